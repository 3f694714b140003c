; Blocks of memory that compiled code keeps; workspaces.py says what they are for, and fills in the names with a dollar.

; a block of memory: its address, its size, and whether an array owns it; a block begins with the number of its entry,
; or -1, and 8 bytes that keep the data aligned
%block = type { ptr, i64, i32 }

@blocks = global [$blocks x %block] zeroinitializer
@lock = global i32 0
@waiting = global i64 0  ; bytes of blocks without an owner
@first = global i64 0  ; the entry that is looked at first: after the one taken last, or the one given last
@account = global ptr null  ; the function that finds the account of the call of this thread

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)

define internal void @acquire() {
  br label %spin
spin:
  %held = atomicrmw xchg ptr @lock, i32 1 acquire
  %free = icmp eq i32 %held, 0
  br i1 %free, label %done, label %spin
done:
  ret void
}

define internal void @release() {
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

; give back the memory of a block without an owner; whether it was one
define internal i1 @drop(ptr %block) {
  %address = load ptr, ptr %block
  %owner = getelementptr %block, ptr %block, i32 0, i32 2
  %owned = load i32, ptr %owner
  %none = icmp eq ptr %address, null
  %is_owned = icmp ne i32 %owned, 0
  %stays = or i1 %none, %is_owned
  br i1 %stays, label %no, label %yes
yes:
  %place = getelementptr %block, ptr %block, i32 0, i32 1
  %size = load i64, ptr %place
  %before = load i64, ptr @waiting
  %after = sub i64 %before, %size
  store i64 %after, ptr @waiting
  store ptr null, ptr %block
  br i1 $advises, label %pages, label %last
pages:  ; the C library may keep what is freed: its pages go back to the system
  %first = ptrtoint ptr %address to i64
  %beyond = add i64 %first, %size
  %next = add i64 %first, 65535
  %start = and i64 %next, -65536
  %end = and i64 %beyond, -65536
  %whole = sub i64 %end, %start
  %at = inttoptr i64 %start to ptr
  call i32 @madvise(ptr %at, i64 %whole, i32 4)
  br label %last
last:
  call void @free(ptr %address)
  ret i1 true
no:
  ret i1 false
}

; give back memory until at most this much waits
define internal void @shrink(i64 %most) {
  br label %next
next:
  %k = phi i64 [0, %0], [%after, %step]
  %sum = load i64, ptr @waiting
  %fits = icmp ule i64 %sum, %most
  %end = icmp eq i64 %k, $blocks
  %stop = or i1 %fits, %end
  br i1 %stop, label %done, label %step
step:
  %block = getelementptr [$blocks x %block], ptr @blocks, i64 0, i64 %k
  call i1 @drop(ptr %block)
  %after = add i64 %k, 1
  br label %next
done:
  ret void
}

define i64 @keep(i64 %most) {
  call void @acquire()
  call void @shrink(i64 %most)
  %sum = load i64, ptr @waiting
  call void @release()
  ret i64 %sum
}

; count a new block for the call of this thread; beyond its budget, give back what waited when it began
define internal void @count(i64 %size) {
  %function = load ptr, ptr @account
  %uncounted = icmp eq ptr %function, null
  br i1 %uncounted, label %done, label %counted
counted:
  %call = call ptr %function()
  %room_place = getelementptr i64, ptr %call, i64 $room
  %had = load i64, ptr %room_place
  %room = sub i64 %had, %size
  store i64 %room, ptr %room_place
  %retained_place = getelementptr i64, ptr %call, i64 $retained
  %retained = load i64, ptr %retained_place
  %exceeds = icmp slt i64 %room, 0
  %any = icmp sgt i64 %retained, 0
  %both = and i1 %exceeds, %any
  br i1 %both, label %back, label %done
back:
  %excess = sub i64 0, %room
  %less = icmp slt i64 %excess, %retained
  %wanted = select i1 %less, i64 %excess, i64 %retained
  %before = load i64, ptr @waiting
  %rest = sub i64 %before, %wanted
  %is_rest = icmp sgt i64 %rest, 0
  %most = select i1 %is_rest, i64 %rest, i64 0
  call void @shrink(i64 %most)
  %after = load i64, ptr @waiting
  %freed = sub i64 %before, %after
  %new_room = add i64 %room, %freed
  store i64 %new_room, ptr %room_place
  %left = sub i64 %retained, %freed
  store i64 %left, ptr %retained_place
  br label %done
done:
  ret void
}

define i64 @idle() {
  %sum = load i64, ptr @waiting
  ret i64 %sum
}

; new memory of the system, in large pages where it is large
define internal ptr @mapped(i64 %size) {
  %large = icmp uge i64 %size, 4194304
  %unit = select i1 %large, i64 $page, i64 64
  %up = add i64 %size, %unit
  %more = sub i64 %up, 1
  %mask = sub i64 0, %unit
  %whole = and i64 %more, %mask
  %made = call ptr @aligned_alloc(i64 %unit, i64 %whole)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %got
got:
  %advise = and i1 %large, $advises
  br i1 %advise, label %pages, label %done
pages:
  call i32 @madvise(ptr %made, i64 %whole, i32 14)
  br label %done
done:
  ret ptr %made
none:
  ret ptr null
}

; memory for an array: a block that waits, of at most an eighth more, or a new one
define ptr @take(i64 %wanted, ptr %nothing) {
  %too_large = icmp ugt i64 %wanted, 4611686018427387904
  br i1 %too_large, label %refuse, label %begin
refuse:
  ret ptr null
begin:
  %size = add i64 %wanted, 16
  %eighth = lshr i64 %size, 3
  %most = add i64 %size, %eighth
  call void @acquire()
  %start = load i64, ptr @first
  br label %next
next:
  %count = phi i64 [0, %begin], [%counted, %other]
  %empty = phi i64 [-1, %begin], [%empty_now, %other]
  %end = icmp eq i64 %count, $blocks
  br i1 %end, label %new, label %look
look:
  %place_of = add i64 %start, %count
  %k = urem i64 %place_of, $blocks
  %block = getelementptr [$blocks x %block], ptr @blocks, i64 0, i64 %k
  %address = load ptr, ptr %block
  %place = getelementptr %block, ptr %block, i32 0, i32 1
  %has = load i64, ptr %place
  %owner = getelementptr %block, ptr %block, i32 0, i32 2
  %owned = load i32, ptr %owner
  %is_empty = icmp eq ptr %address, null
  %empty_now = select i1 %is_empty, i64 %k, i64 %empty
  %waits = icmp eq i32 %owned, 0
  %enough = icmp uge i64 %has, %size
  %close = icmp ule i64 %has, %most
  %present = xor i1 %is_empty, true
  %a = and i1 %waits, %enough
  %b = and i1 %close, %present
  %fits = and i1 %a, %b
  br i1 %fits, label %found, label %other
other:
  %counted = add i64 %count, 1
  br label %next
found:
  %after = add i64 %k, 1
  store i64 %after, ptr @first
  store i32 1, ptr %owner
  %before = load i64, ptr @waiting
  %less = sub i64 %before, %has
  store i64 %less, ptr @waiting
  call void @release()
  %kept = getelementptr i8, ptr %address, i64 16
  ret ptr %kept
new:
  call void @count(i64 %size)
  %full = icmp eq i64 %empty, -1
  br i1 %full, label %evict, label %allocate
evict:  ; all entries are taken: those of blocks that wait become free, for later arrays
  call void @shrink(i64 0)
  br label %allocate
allocate:
  %first = call ptr @mapped(i64 %size)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %again, label %allocated
again:
  call void @shrink(i64 0)
  %second = call ptr @mapped(i64 %size)
  %nothing_left = icmp eq ptr %second, null
  br i1 %nothing_left, label %none, label %allocated
none:
  call void @release()
  ret ptr null
allocated:
  %made = phi ptr [%first, %allocate], [%second, %again]
  store i64 %empty, ptr %made
  br i1 %full, label %unknown, label %note
note:
  %entry = getelementptr [$blocks x %block], ptr @blocks, i64 0, i64 %empty
  store ptr %made, ptr %entry
  %entry_size = getelementptr %block, ptr %entry, i32 0, i32 1
  store i64 %size, ptr %entry_size
  %entry_owner = getelementptr %block, ptr %entry, i32 0, i32 2
  store i32 1, ptr %entry_owner
  br label %unknown
unknown:
  call void @release()
  %data = getelementptr i8, ptr %made, i64 16
  ret ptr %data
}

; an array has died: its block waits, if there is room
define void @give(ptr %data, ptr %nothing) {
  %address = getelementptr i8, ptr %data, i64 -16
  call void @acquire()
  %k = load i64, ptr %address
  %has_none = icmp eq i64 %k, -1
  br i1 %has_none, label %unknown, label %found
found:
  %block = getelementptr [$blocks x %block], ptr @blocks, i64 0, i64 %k
  %place = getelementptr %block, ptr %block, i32 0, i32 1
  %size = load i64, ptr %place
  %owner = getelementptr %block, ptr %block, i32 0, i32 2
  %fits = icmp ule i64 %size, $most
  br i1 %fits, label %keep, label %large
keep:
  %rest = sub i64 $most, %size
  call void @shrink(i64 %rest)
  %others = load i64, ptr @waiting
  %now = add i64 %others, %size
  store i64 %now, ptr @waiting
  store i32 0, ptr %owner
  store i64 %k, ptr @first
  call void @release()
  ret void
large:
  store ptr null, ptr %block
  br label %unknown
unknown:
  call void @release()
  call void @free(ptr %address)
  ret void
}

define ptr @resize(ptr %data, i64 %size, ptr %nothing) {
  ret ptr null  ; arrays have one size
}

; what compiled code calls: numba's own memory for small arrays
define ptr @new(i64 %size, i32 %align) {
  %small = icmp ult i64 %size, $smallest
  br i1 %small, label %own, label %external
own:
  %function = inttoptr i64 $own to ptr
  %made = call ptr %function(i64 %size, i32 %align)
  ret ptr %made
external:
  %allocate = inttoptr i64 $external to ptr
  %table = inttoptr i64 $table to ptr
  %block = call ptr %allocate(i64 %size, ptr %table)
  ret ptr %block
}

define void @forked() {
  store i32 0, ptr @lock
  ret void
}
