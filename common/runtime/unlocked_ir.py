"""The function that runs a program without Python's lock: LLVM IR text, to be read with `common.runtime.builtins_ir`.

``f(table, given, memory)`` returns 0, (instruction + 1) << 32 | status, or -1 - index for an argument that is state and
has become something else. `given` holds the addresses of arrays and the bits of numbers, in order; the caller has
checked them. `memory` is what the call writes to besides its outputs: the frame, the addresses of one kernel's buffers,
and the arena.

Table, in words: [arguments, records, code, words of the frame, frame, places, list of places, buffers]; all but the
counts are offsets. A record is that of `common.runtime.step_ir`, with an object's identity as its target: state is the
array that it was, or refused. Words of the frame that are places hold offsets into the arena.
"""

from __future__ import annotations

FREE = """
define i64 @SYMBOL(ptr %table, ptr %given, ptr %memory) {
entry:
  %count = call i64 @word(ptr %table, i64 0)
  %records_offset = call i64 @word(ptr %table, i64 1)
  %records = getelementptr i64, ptr %table, i64 %records_offset
  %code_offset = call i64 @word(ptr %table, i64 2)
  %code = getelementptr i64, ptr %table, i64 %code_offset
  %words = call i64 @word(ptr %table, i64 3)
  %frame_offset = call i64 @word(ptr %table, i64 4)
  %frame_words = getelementptr i64, ptr %table, i64 %frame_offset
  %places = call i64 @word(ptr %table, i64 5)
  %list_offset = call i64 @word(ptr %table, i64 6)
  %list = getelementptr i64, ptr %table, i64 %list_offset
  %most = call i64 @word(ptr %table, i64 7)
  %frame_bytes = shl i64 %words, 3
  call void @llvm.memmove.p0.p0.i64(ptr %memory, ptr %frame_words, i64 %frame_bytes, i1 false)
  %bufs = getelementptr i64, ptr %memory, i64 %words
  %behind = getelementptr i64, ptr %bufs, i64 %most
  %behind_word = ptrtoint ptr %behind to i64
  %behind_up = add i64 %behind_word, 63
  %arena = and i64 %behind_up, -64
  br label %move
move:
  %k = phi i64 [0, %entry], [%k_next, %moving]
  %moved = icmp eq i64 %k, %places
  br i1 %moved, label %check, label %moving
moving:
  %place = call i64 @word(ptr %list, i64 %k)
  %offset = call i64 @word(ptr %memory, i64 %place)
  %address = add i64 %arena, %offset
  call void @set_word(ptr %memory, i64 %place, i64 %address)
  %k_next = add i64 %k, 1
  br label %move
check:
  %i = phi i64 [0, %move], [%i_next, %checked]
  %g = phi i64 [0, %move], [%g_next, %checked]
  %record = phi ptr [%records, %move], [%record_next, %checked]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %run, label %item
item:
  %kind = call i64 @word(ptr %record, i64 0)
  %subject = call i64 @word(ptr %record, i64 1)
  %nd = call i64 @word(ptr %record, i64 2)
  %flags64 = call i64 @word(ptr %record, i64 3)
  %flags = trunc i64 %flags64 to i32
  %slot = call i64 @word(ptr %record, i64 4)
  %source = call i64 @word(ptr %record, i64 5)
  %shape = getelementptr i64, ptr %record, i64 9
  %record_next = getelementptr i64, ptr %shape, i64 %nd
  %i_next = add i64 %i, 1
  %is_given = icmp eq i64 %source, 0
  br i1 %is_given, label %present, label %held
present:
  %cell = getelementptr i64, ptr %given, i64 %g
  %cell_word = ptrtoint ptr %cell to i64
  %given_word = call i64 @word(ptr %cell, i64 0)
  %is_array = icmp eq i64 %kind, 0
  %given_address = select i1 %is_array, i64 %given_word, i64 %cell_word
  %g_given = add i64 %g, 1
  br label %checked
held:
  %owner = call i64 @word(ptr %record, i64 6)
  %owner_p = inttoptr i64 %owner to ptr
  %object = load ptr, ptr %owner_p
  %object_word = ptrtoint ptr %object to i64
  %expected = call i64 @word(ptr %record, i64 7)
  %is_same = icmp eq i64 %object_word, %expected
  br i1 %is_same, label %form, label %changed
form:
  %is_good = call i1 @is_array(ptr %object, i64 %subject, i32 %flags)
  br i1 %is_good, label %sizes, label %changed
sizes:
  %fits = call i1 @has_sizes(ptr %object, i64 %nd, ptr %shape)
  br i1 %fits, label %data, label %changed
data:
  %held_address = call i64 @word(ptr %object, i64 2)
  br label %checked
checked:
  %own_address = phi i64 [%given_address, %present], [%held_address, %data]
  %g_next = phi i64 [%g_given, %present], [%g, %data]
  call void @set_word(ptr %memory, i64 %slot, i64 %own_address)
  br label %check
changed:
  %no = sub i64 -1, %i
  ret i64 %no
run:
  %status = call i64 @execute(ptr %memory, ptr %bufs, ptr %code, i1 false)
  ret i64 %status
}
"""
