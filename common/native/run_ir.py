"""The builtin that runs a whole program: LLVM IR text, to be read with `common.native.calls_ir`.

``f(*arguments)`` returns 0, BAD_ARGUMENT + index, OVERLAP + index, or (instruction + 1) << 32 | status.

Table, in words: [arguments, 0, frame, last, bufs, records, code, bytes, writes]; frame, last and bufs
are addresses, the other four offsets into the table:

- a record per argument: [kind, descr word or cell address, nd, flags, slot, dims...];
- code, per kernel call: [kernel, number of the instruction, buffers, slots..., ints, values...]; what has one of the
  small numbers of `common.native.plan` in place of a kernel's address: [that, number of the instruction, a, b, c, d];
- bytes and writes, one word per argument each.

Words of the frame are addresses of buffers, or counters of loops.

``last[i]`` is the data address with which argument i passed the overlap check; behind it lies the list of the
arguments whose address has changed. At ``bufs`` the addresses of the buffers of one kernel are put together.
"""

from __future__ import annotations

RUN = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @table_of(ptr %self)
  %count = call i64 @word(ptr %table, i64 0)
  %frame_word = call i64 @word(ptr %table, i64 2)
  %frame = inttoptr i64 %frame_word to ptr
  %last_word = call i64 @word(ptr %table, i64 3)
  %last = inttoptr i64 %last_word to ptr
  %bufs_word = call i64 @word(ptr %table, i64 4)
  %bufs = inttoptr i64 %bufs_word to ptr
  %changed = getelementptr i64, ptr %last, i64 %count
  %records_offset = call i64 @word(ptr %table, i64 5)
  %records = getelementptr i64, ptr %table, i64 %records_offset
  %code_offset = call i64 @word(ptr %table, i64 6)
  %code = getelementptr i64, ptr %table, i64 %code_offset
  %bytes_offset = call i64 @word(ptr %table, i64 7)
  %bytes = getelementptr i64, ptr %table, i64 %bytes_offset
  %writes_offset = call i64 @word(ptr %table, i64 8)
  %writes = getelementptr i64, ptr %table, i64 %writes_offset
  %right_count = icmp eq i64 %count, %nargs
  br i1 %right_count, label %check, label %wrong_count
wrong_count:
  %fewer = icmp ult i64 %nargs, %count
  %odd_index = select i1 %fewer, i64 %nargs, i64 %count
  %odd_code = add i64 %odd_index, 1000000
  br label %answer

check:
  %i = phi i64 [0, %entry], [%i_next, %checked]
  %record = phi ptr [%records, %entry], [%record_next, %checked]
  %nc = phi i64 [0, %entry], [%nc_next, %checked]
  %checked_all = icmp eq i64 %i, %count
  br i1 %checked_all, label %overlap, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %kind = call i64 @word(ptr %record, i64 0)
  %subject = call i64 @word(ptr %record, i64 1)
  %nd = call i64 @word(ptr %record, i64 2)
  %flags64 = call i64 @word(ptr %record, i64 3)
  %slot = call i64 @word(ptr %record, i64 4)
  %shape = getelementptr i64, ptr %record, i64 5
  %record_next = getelementptr i64, ptr %shape, i64 %nd
  %i_next = add i64 %i, 1
  switch i64 %kind, label %array [i64 1, label %float i64 2, label %int]
array:
  %flags = trunc i64 %flags64 to i32
  %is_good = call i1 @is_array(ptr %arg, i64 %subject, i32 %flags)
  br i1 %is_good, label %array_rank, label %bad
array_rank:
  %own_nd_p = getelementptr i8, ptr %arg, i64 24
  %own_nd = load i32, ptr %own_nd_p
  %own_nd64 = zext i32 %own_nd to i64
  %rank_equal = icmp eq i64 %own_nd64, %nd
  br i1 %rank_equal, label %array_shape, label %bad
array_shape:
  %dims = call ptr @pointer_at(ptr %arg, i64 32)
  %dims_equal = call i1 @same_words(ptr %dims, ptr %shape, i64 %nd)
  br i1 %dims_equal, label %array_good, label %bad
array_good:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %frame, i64 %slot, i64 %data)
  %before = call i64 @word(ptr %last, i64 %i)
  call void @set_word(ptr %last, i64 %i, i64 %data)
  call void @set_word(ptr %changed, i64 %nc, i64 %i)
  %is_new = icmp ne i64 %before, %data
  %is_new64 = zext i1 %is_new to i64
  %nc_array = add i64 %nc, %is_new64
  br label %checked
float:
  %is_float = call i1 @has_type(ptr %arg, ptr @twingrad_PyFloat_Type)
  br i1 %is_float, label %float_good, label %bad
float_good:
  %float_bits = call i64 @word(ptr %arg, i64 2)
  br label %cell
int:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int_good, label %bad
int_good:
  %int_value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  %doubtful = icmp eq i64 %int_value, -1
  br i1 %doubtful, label %maybe_error, label %cell
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %cell, label %raise
cell:
  %cell_value = phi i64 [%float_bits, %float_good], [%int_value, %int_good], [%int_value, %maybe_error]
  %cell_p = inttoptr i64 %subject to ptr
  store i64 %cell_value, ptr %cell_p
  br label %checked
checked:
  %nc_next = phi i64 [%nc_array, %array_good], [%nc, %cell]
  br label %check
bad:
  %bad_code = add i64 %i, 1000000
  br label %forget
raise:
  br label %forget

; only a pair with a changed address can newly overlap: in a training loop the parameters cost nothing here
overlap:
  %c = phi i64 [0, %check], [%c_next, %against_end]
  %compared_all = icmp eq i64 %c, %nc
  br i1 %compared_all, label %execute, label %one
one:
  %a = call i64 @word(ptr %changed, i64 %c)
  %c_next = add i64 %c, 1
  %a_start = call i64 @word(ptr %last, i64 %a)
  %a_bytes = call i64 @word(ptr %bytes, i64 %a)
  %a_stop = add i64 %a_start, %a_bytes
  %a_writes = call i64 @word(ptr %writes, i64 %a)
  br label %against
against:
  %b = phi i64 [0, %one], [%b_next, %against_next]
  %against_all = icmp eq i64 %b, %count
  br i1 %against_all, label %against_end, label %pair
pair:
  %b_next = add i64 %b, 1
  %b_start = call i64 @word(ptr %last, i64 %b)
  %b_bytes = call i64 @word(ptr %bytes, i64 %b)
  %b_stop = add i64 %b_start, %b_bytes
  %b_writes = call i64 @word(ptr %writes, i64 %b)
  %either = or i64 %a_writes, %b_writes
  %one_writes = icmp ne i64 %either, 0
  %different = icmp ne i64 %a, %b
  %starts_before = icmp ult i64 %a_start, %b_stop
  %stops_after = icmp ult i64 %b_start, %a_stop
  %a_some = icmp ne i64 %a_bytes, 0
  %b_some = icmp ne i64 %b_bytes, 0
  %t0 = and i1 %one_writes, %different
  %t1 = and i1 %starts_before, %stops_after
  %t2 = and i1 %a_some, %b_some
  %t3 = and i1 %t0, %t1
  %clash = and i1 %t2, %t3
  br i1 %clash, label %clashed, label %against_next
against_next:
  br label %against
against_end:
  br label %overlap
clashed:
  %b_first = icmp ult i64 %a, %b
  %later = select i1 %b_first, i64 %b, i64 %a
  %clash_code = add i64 %later, 2000000
  br label %forget

; a refused call leaves no address behind that counts as checked
forget:
  %forget_code = phi i64 [%bad_code, %bad], [%clash_code, %clashed], [-1, %raise]
  %forget_count = phi i64 [%nc, %bad], [%nc, %clashed], [%nc, %raise]
  br label %forget_loop
forget_loop:
  %f = phi i64 [0, %forget], [%f_next, %forget_body]
  %forgotten = icmp eq i64 %f, %forget_count
  br i1 %forgotten, label %forget_end, label %forget_body
forget_body:
  %victim = call i64 @word(ptr %changed, i64 %f)
  call void @set_word(ptr %last, i64 %victim, i64 0)
  %f_next = add i64 %f, 1
  br label %forget_loop
forget_end:
  %has_error = icmp eq i64 %forget_code, -1
  br i1 %has_error, label %raised, label %answer
raised:
  ret ptr null

execute:
  %pc = phi ptr [%code, %overlap], [%pc_next, %step_done], [%pc_jump, %jump], [%pc_op, %op_done]
  %kernel_word = call i64 @word(ptr %pc, i64 0)
  %ordinal = call i64 @word(ptr %pc, i64 1)
  %is_op = icmp ult i64 %kernel_word, 64
  br i1 %is_op, label %op, label %step_start
step_start:
  %kernel = inttoptr i64 %kernel_word to ptr
  %nbufs = call i64 @word(ptr %pc, i64 2)
  %slots = getelementptr i64, ptr %pc, i64 3
  br label %gather
gather:
  %g = phi i64 [0, %step_start], [%g_next, %gather_body]
  %gathered = icmp eq i64 %g, %nbufs
  br i1 %gathered, label %call, label %gather_body
gather_body:
  %own_slot = call i64 @word(ptr %slots, i64 %g)
  %own_address = call i64 @word(ptr %frame, i64 %own_slot)
  call void @set_word(ptr %bufs, i64 %g, i64 %own_address)
  %g_next = add i64 %g, 1
  br label %gather
call:
  %nints = call i64 @word(ptr %slots, i64 %nbufs)
  %after_slots = getelementptr i64, ptr %slots, i64 %nbufs
  %ints = getelementptr i64, ptr %after_slots, i64 1
  %pc_next = getelementptr i64, ptr %ints, i64 %nints
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %step_done, label %step_failed
step_done:
  br label %execute

op:
  %pc_op = getelementptr i64, ptr %pc, i64 6
  %opa = call i64 @word(ptr %pc, i64 2)
  %opb = call i64 @word(ptr %pc, i64 3)
  %opc = call i64 @word(ptr %pc, i64 4)
  %opd = call i64 @word(ptr %pc, i64 5)
  %pc_jump = getelementptr i64, ptr %code, i64 %opd
  %fa = call i64 @word(ptr %frame, i64 %opa)
  %pa = inttoptr i64 %fa to ptr
  switch i64 %kernel_word, label %answer [
    i64 1, label %op_set i64 2, label %op_row i64 3, label %op_swap i64 4, label %op_load i64 5, label %op_store
    i64 6, label %op_copy i64 7, label %jump i64 8, label %op_jump_false i64 9, label %op_jump_reached
    i64 10, label %op_jump_other i64 11, label %op_limit
  ]
op_set:
  %fb_set = call i64 @word(ptr %frame, i64 %opb)
  %set_value = add i64 %fb_set, %opd
  call void @set_word(ptr %frame, i64 %opa, i64 %set_value)
  br label %op_done
op_row:
  %fb_row = call i64 @word(ptr %frame, i64 %opb)
  %fc = call i64 @word(ptr %frame, i64 %opc)
  %row_offset = mul i64 %fc, %opd
  %row_address = add i64 %fb_row, %row_offset
  call void @set_word(ptr %frame, i64 %opa, i64 %row_address)
  br label %op_done
op_swap:
  %fb_swap = call i64 @word(ptr %frame, i64 %opb)
  call void @set_word(ptr %frame, i64 %opa, i64 %fb_swap)
  call void @set_word(ptr %frame, i64 %opb, i64 %fa)
  br label %op_done
op_load:
  %fb_load = call i64 @word(ptr %frame, i64 %opb)
  %pfb_load = inttoptr i64 %fb_load to ptr
  %loaded = load i64, ptr %pfb_load
  call void @set_word(ptr %frame, i64 %opa, i64 %loaded)
  br label %op_done
op_store:
  %fb_store = call i64 @word(ptr %frame, i64 %opb)
  store i64 %fb_store, ptr %pa
  br label %op_done
op_copy:
  %fb_copy = call i64 @word(ptr %frame, i64 %opb)
  %pfb_copy = inttoptr i64 %fb_copy to ptr
  call void @llvm.memmove.p0.p0.i64(ptr %pa, ptr %pfb_copy, i64 %opd, i1 false)
  br label %op_done
op_jump_false:
  %truth = load i8, ptr %pa
  %is_false = icmp eq i8 %truth, 0
  br i1 %is_false, label %jump, label %op_done
op_jump_reached:
  %fb_jump_reached = call i64 @word(ptr %frame, i64 %opb)
  %is_reached = icmp sge i64 %fa, %fb_jump_reached
  br i1 %is_reached, label %jump, label %op_done
op_jump_other:
  %is_other = icmp ne i64 %fa, %opb
  br i1 %is_other, label %jump, label %op_done
op_limit:
  %is_beyond = icmp sge i64 %fa, %opb
  br i1 %is_beyond, label %step_failed, label %op_done
jump:
  br label %execute
op_done:
  br label %execute
step_failed:
  %failed_status = phi i64 [%status, %call], [%opc, %op_limit]
  %step_next = add i64 %ordinal, 1
  %low = and i64 %failed_status, 4294967295
  %high = shl i64 %step_next, 32
  %packed = or i64 %high, %low
  br label %answer
answer:
  %answer_value = phi i64 [%odd_code, %wrong_count], [%forget_code, %forget_end], [0, %op],
                          [%packed, %step_failed]
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %answer_value)
  ret ptr %result
}
"""
