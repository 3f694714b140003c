; Threads that run the chunks of parallel loops; pool.py says how they are used, and fills in the names with a dollar.

; Bit 32 of @region: a loop is running, and threads may join it.  Bit 33: its caller sleeps until the last thread leaves.
; The bits below: how many threads are in it.
@region = global i64 0
@busy = global i32 0      ; whether a caller has the threads; others run their chunks alone
@function = global ptr null
@context = global ptr null
@chunks = global i64 0
@next = global i64 0      ; the first chunk that nobody has taken
@helpers = global i32 0   ; threads that a loop may wake
@awake = global [$most x i32] zeroinitializer
@doors = global [$most x ptr] zeroinitializer  ; the lock that a thread waits for
@done = global ptr null   ; the lock that the caller waits for

define internal i32 @acquire(ptr %lock) {
  %address = inttoptr i64 $acquire to ptr
  %found = call i32 %address(ptr %lock, i32 1)
  ret i32 %found
}

; whether a lock could be taken in a short time
define internal i1 @acquire_soon(ptr %lock) {
  %address = inttoptr i64 $acquire_for to ptr
  %found = call i32 %address(ptr %lock, i64 $wait, i32 0)
  %taken = icmp eq i32 %found, 1
  ret i1 %taken
}

declare i64 @tapegen_interrupted(ptr)

define internal void @release(ptr %lock) {
  %address = inttoptr i64 $release to ptr
  call void %address(ptr %lock)
  ret void
}

$declared
define internal void @pause() alwaysinline {
  $pause
  ret void
}

; take chunks while there are any
define internal void @work() {
  %function = load ptr, ptr @function
  %context = load ptr, ptr @context
  %chunks = load i64, ptr @chunks
  br label %next
next:
  %chunk = atomicrmw add ptr @next, i64 1 seq_cst
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %context, i64 %chunk)
  br label %next
end:
  ret void
}

; join the loop that is running, if there is one with chunks to take
define internal void @join() {
  %first = load atomic i64, ptr @region seq_cst, align 8
  br label %try
try:
  %now = phi i64 [%first, %0], [%seen, %enter]
  %open = and i64 %now, 4294967296
  %closed = icmp eq i64 %open, 0
  br i1 %closed, label %end, label %enter
enter:
  %inside = add i64 %now, 1
  %pair = cmpxchg ptr @region, i64 %now, i64 %inside seq_cst seq_cst
  %seen = extractvalue {i64, i1} %pair, 0
  %joined = extractvalue {i64, i1} %pair, 1
  br i1 %joined, label %run, label %try
run:
  call void @work()
  %before = atomicrmw sub ptr @region, i64 1 seq_cst
  %wakes = icmp eq i64 %before, 8589934593
  br i1 %wakes, label %wake, label %end
wake:
  %lock = load ptr, ptr @done
  call void @release(ptr %lock)
  br label %end
end:
  ret void
}

; whether a loop is running that has chunks left
define internal i1 @has_work() {
  %now = load atomic i64, ptr @region seq_cst, align 8
  %open = and i64 %now, 4294967296
  %is_open = icmp ne i64 %open, 0
  %taken = load atomic i64, ptr @next seq_cst, align 8
  %chunks = load atomic i64, ptr @chunks seq_cst, align 8
  %left = icmp slt i64 %taken, %chunks
  %both = and i1 %is_open, %left
  ret i1 %both
}

; a thread: it sleeps, runs chunks, and looks for the next loop for a short time before it sleeps again
define void @helper(ptr %number) {
  %k = ptrtoint ptr %number to i64
  %mark = getelementptr [$most x i32], ptr @awake, i64 0, i64 %k
  %place = getelementptr [$most x ptr], ptr @doors, i64 0, i64 %k
  %door = load ptr, ptr %place
  br label %sleep
sleep:
  call i32 @acquire(ptr %door)
  br label %look
look:
  call void @join()
  br label %spin
spin:
  %turn = phi i64 [0, %look], [%turns, %pause]
  %found = call i1 @has_work()
  br i1 %found, label %look, label %idle
idle:
  %turns = add i64 %turn, 1
  %over = icmp uge i64 %turns, $spins
  br i1 %over, label %rest, label %pause
pause:
  call void @pause()
  br label %spin
rest:
  store atomic i32 0, ptr %mark seq_cst, align 4
  %late = call i1 @has_work()
  br i1 %late, label %stay, label %sleep
stay:  ; a loop began meanwhile: join it, unless its caller has opened the door already
  %pair = cmpxchg ptr %mark, i32 0, i32 1 seq_cst seq_cst
  %alone = extractvalue {i32, i1} %pair, 1
  br i1 %alone, label %look, label %sleep
}

define internal void @alone(ptr %function, ptr %context, i64 %chunks) {
  br label %next
next:
  %chunk = phi i64 [0, %0], [%after, %run]
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %run, label %end
run:
  call void %function(ptr %context, i64 %chunk)
  %after = add i64 %chunk, 1
  br label %next
end:
  ret void
}

; run function(context, k) for each k < chunks, in any order
define void @run(ptr %function, ptr %context, i64 %chunks) {
  %helpers = load atomic i32, ptr @helpers seq_cst, align 4
  %none = icmp eq i32 %helpers, 0
  %few = icmp slt i64 %chunks, 2
  %one = or i1 %none, %few
  br i1 %one, label %serial, label %try
try:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue {i32, i1} %pair, 1
  br i1 %mine, label %begin, label %serial
serial:
  call void @alone(ptr %function, ptr %context, i64 %chunks)
  ret void
begin:
  store ptr %function, ptr @function
  store ptr %context, ptr @context
  store atomic i64 %chunks, ptr @chunks seq_cst, align 8
  store atomic i64 0, ptr @next seq_cst, align 8
  store atomic i64 4294967296, ptr @region seq_cst, align 8
  %others = sub i64 %chunks, 1
  %wide = zext i32 %helpers to i64
  %enough = icmp slt i64 %others, %wide
  %wanted = select i1 %enough, i64 %others, i64 %wide
  br label %call
call:
  %k = phi i64 [0, %begin], [%following, %called]
  %all = icmp eq i64 %k, %wanted
  br i1 %all, label %join, label %wake
wake:
  %mark = getelementptr [$most x i32], ptr @awake, i64 0, i64 %k
  %was = atomicrmw xchg ptr %mark, i32 1 seq_cst
  %slept = icmp eq i32 %was, 0
  br i1 %slept, label %open, label %called
open:
  %place = getelementptr [$most x ptr], ptr @doors, i64 0, i64 %k
  %door = load ptr, ptr %place
  call void @release(ptr %door)
  br label %called
called:
  %following = add i64 %k, 1
  br label %call
join:
  call void @work()
  %before = atomicrmw and ptr @region, i64 4294967295 seq_cst
  br label %wait
wait:
  %turn = phi i64 [0, %join], [%turns, %pause]
  %inside = load atomic i64, ptr @region seq_cst, align 8
  %over = icmp eq i64 %inside, 0
  br i1 %over, label %end, label %idle
idle:
  %turns = add i64 %turn, 1
  %long = icmp uge i64 %turns, $spins
  br i1 %long, label %rest, label %pause
pause:
  call void @pause()
  br label %wait
rest:
  %left = atomicrmw or ptr @region, i64 8589934592 seq_cst
  %nobody = icmp eq i64 %left, 0
  br i1 %nobody, label %end, label %asleep
asleep:
  %lock = load ptr, ptr @done
  %often = alloca i64
  br label %doze
doze:
  %woken = call i1 @acquire_soon(ptr %lock)
  br i1 %woken, label %end, label %poll
poll:  ; after Ctrl-C the threads stop by themselves
  store i64 $often, ptr %often
  call i64 @tapegen_interrupted(ptr %often)
  br label %doze
end:
  store atomic i64 0, ptr @region seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

; which lock the thread of this number waits for
define void @enter(i64 %k, ptr %door) {
  %place = getelementptr [$most x ptr], ptr @doors, i64 0, i64 %k
  store ptr %door, ptr %place
  ret void
}

; how many threads a loop may wake, and the lock of its caller
define void @use(i32 %helpers, ptr %done) {
  store ptr %done, ptr @done
  store atomic i32 %helpers, ptr @helpers seq_cst, align 4
  ret void
}

; in a forked process there are no other threads
define void @forked() {
  store atomic i32 0, ptr @helpers seq_cst, align 4
  store atomic i64 0, ptr @region seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}
