"""The instructions of a program, one after the other: LLVM IR text, to be read with `common.runtime.builtins_ir`.

They are those of `common.runtime.program_plan`. Where Python's lock is held the run listens for Ctrl-C: each iteration
of a loop ends with a jump, and every 16th jump looks. The run then ends with the status INTERRUPTED, and has changed
no state, as with any status. The handler is left to the caller's interpreter, which runs it at once: Python code that
ran in here could use the memory of this run, or free it.
"""

from __future__ import annotations

EXECUTE = """
; 0, or (instruction + 1) << 32 | status
define internal i64 @execute(ptr %frame, ptr %bufs, ptr %code, i1 %listens) {
entry:
  %shared_args = alloca [3 x i64]
  %jumps = alloca i64
  store i64 0, ptr %jumps
  br label %next
next:
  %pc = phi ptr [%code, %entry], [%pc_next, %step_done], [%pc_jump, %jump], [%pc_op, %op_done],
            [%pc_shared, %all_looked_at]
  %kernel_word = call i64 @word(ptr %pc, i64 0)
  %ordinal = call i64 @word(ptr %pc, i64 1)
  %is_op = icmp ult i64 %kernel_word, 64
  br i1 %is_op, label %op, label %step_start
step_start:
  %kernel = inttoptr i64 %kernel_word to ptr
  %nbufs = call i64 @word(ptr %pc, i64 2)
  %slots = getelementptr i64, ptr %pc, i64 3
  call void @choose(ptr %bufs, ptr %frame, ptr %slots, i64 %nbufs)
  %nints = call i64 @word(ptr %slots, i64 %nbufs)
  %after_slots = getelementptr i64, ptr %slots, i64 %nbufs
  %ints = getelementptr i64, ptr %after_slots, i64 1
  %pc_next = getelementptr i64, ptr %ints, i64 %nints
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %step_done, label %step_failed
step_done:
  br label %next

op:
  %pc_op = getelementptr i64, ptr %pc, i64 6
  %opa = call i64 @word(ptr %pc, i64 2)
  %opb = call i64 @word(ptr %pc, i64 3)
  %opc = call i64 @word(ptr %pc, i64 4)
  %opd = call i64 @word(ptr %pc, i64 5)
  %pc_jump = getelementptr i64, ptr %code, i64 %opd
  %fa = call i64 @word(ptr %frame, i64 %opa)
  %pa = inttoptr i64 %fa to ptr
  switch i64 %kernel_word, label %end [
    i64 1, label %op_set i64 2, label %op_row i64 3, label %op_swap i64 4, label %op_load i64 5, label %op_store
    i64 6, label %op_copy i64 7, label %op_jump i64 8, label %op_jump_false i64 9, label %op_jump_reached
    i64 10, label %op_jump_other i64 11, label %op_limit i64 12, label %op_share
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
op_jump:
  %jumps_before = load i64, ptr %jumps
  %jumps_now = add i64 %jumps_before, 1
  store i64 %jumps_now, ptr %jumps
  %since = and i64 %jumps_now, 15
  %is_time = icmp eq i64 %since, 0
  %looks = and i1 %is_time, %listens
  br i1 %looks, label %listen, label %jump
listen:
  %interrupt = call i32 @twingrad_PyOS_InterruptOccurred()
  %is_interrupt = icmp ne i32 %interrupt, 0
  br i1 %is_interrupt, label %interrupted, label %jump
interrupted:
  call void @twingrad_PyErr_SetInterrupt()
  br label %step_failed
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
op_share:
  %share_word = call i64 @word(ptr %frame, i64 %opc)
  %share = inttoptr i64 %share_word to ptr
  %task_slot = add i64 %opc, 1
  %task_word = call i64 @word(ptr %frame, i64 %task_slot)
  %task = inttoptr i64 %task_word to ptr
  %statuses_slot = add i64 %opc, 2
  %statuses = getelementptr i64, ptr %frame, i64 %statuses_slot
  %pc_word = ptrtoint ptr %pc_op to i64
  %statuses_word = ptrtoint ptr %statuses to i64
  call void @set_word(ptr %shared_args, i64 0, i64 %pc_word)
  call void @set_word(ptr %shared_args, i64 1, i64 %opb)
  call void @set_word(ptr %shared_args, i64 2, i64 %statuses_word)
  call void %share(ptr %task, ptr %frame, ptr %shared_args, i64 3, i64 %opa)
  %shared_words = mul i64 %opa, %opb
  %pc_shared = getelementptr i64, ptr %pc_op, i64 %shared_words
  br label %look
look:
  %looked = phi i64 [0, %op_share], [%looked_next, %look_next]
  %looked_all = icmp eq i64 %looked, %opa
  br i1 %looked_all, label %all_looked_at, label %look_at
look_at:
  %task_status = call i64 @word(ptr %statuses, i64 %looked)
  %looked_next = add i64 %looked, 1
  %task_good = icmp eq i64 %task_status, 0
  br i1 %task_good, label %look_next, label %step_failed
look_next:
  br label %look
all_looked_at:
  br label %next
jump:
  br label %next
op_done:
  br label %next
step_failed:
  %failed_status = phi i64 [%status, %step_start], [%opc, %op_limit], [%task_status, %look_at],
                       [8388608, %interrupted]
  %step_next = add i64 %ordinal, 1
  %low = and i64 %failed_status, 4294967295
  %high = shl i64 %step_next, 32
  %packed = or i64 %high, %low
  ret i64 %packed
end:
  ret i64 0
}
"""
