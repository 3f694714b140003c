"""Side effects on objects of the caller: `self.nfev += 1`, `history.append(x)`, `global n`.

* `caller_objects` - such objects as containers of the program
* `written_captures` - captured objects, global and closure variables that are written
* `outlined_containers` - containers that an outlined call changes
* `results` - what was written, as further results of the program
* `commit` - what the call stores into the objects when the code has run

Stores happen once per user call, however often the primal runs inside.  Where the object is reached through a global or
closure variable, the first write makes lowering restart with the object as a container.
"""
