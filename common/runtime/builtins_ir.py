"""The native builtins of `common.runtime.builtins`: LLVM IR text against the C layout of CPython and numpy.

Offsets in bytes (all checked at run time by `common.runtime.cpython_abi` before this code is used): PyObject type 8;
tuple item 0 24; bytes data 32; float value 16; ndarray data 16, nd 24, dimensions 32, strides 40, descr 56,
flags 64; the eight bytes of a descr from 24 on hold kind, type character, byte order and type number, which
together identify a native dtype.

``self`` of each builtin is a tuple whose first item is a bytes object: a table of int64 words, described at
each function.  The other items only keep alive what the table points to.
"""

from __future__ import annotations

from common.runtime.array_ir import EXTENT, STEPS, VIEW
from common.runtime.dispatch_ir import FIND, FIXED
from common.runtime.execute_ir import EXECUTE
from common.runtime.prelude_ir import PRELUDE
from common.runtime.run_ir import RUN
from common.runtime.step_ir import OBJECTS
from common.runtime.unlocked_ir import FREE

MAX_BUFFERS = 64
MAX_INPUTS = 8
BAD_ARGUMENT = 1_000_000
OVERLAP = 2_000_000
RAISED = 0xFFFFFFFF
INTERRUPTED = 1 << 23

# f(*args): ndarrays -> bufs, ints -> args.  Table: [kernel].  Returns the status, -1 for other arguments.
_CALL = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [64 x i64]
  %ints = alloca [64 x i64]
  %table = call ptr @table_of(ptr %self)
  %too_many = icmp ugt i64 %nargs, 64
  br i1 %too_many, label %refuse, label %loop
loop:
  %i = phi i64 [0, %entry], [%i_next, %next]
  %nb = phi i64 [0, %entry], [%nb_next, %next]
  %ni = phi i64 [0, %entry], [%ni_next, %next]
  %end = icmp eq i64 %i, %nargs
  br i1 %end, label %run, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %is_array = call i1 @has_type(ptr %arg, ptr @twingrad_PyArray_Type)
  br i1 %is_array, label %array, label %other
array:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %bufs, i64 %nb, i64 %data)
  %nb_more = add i64 %nb, 1
  br label %next
other:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int, label %refuse
int:
  %value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  call void @set_word(ptr %ints, i64 %ni, i64 %value)
  %ni_more = add i64 %ni, 1
  %doubtful = icmp eq i64 %value, -1
  br i1 %doubtful, label %maybe_error, label %next
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %next, label %fail
next:
  %nb_next = phi i64 [%nb_more, %array], [%nb, %int], [%nb, %maybe_error]
  %ni_next = phi i64 [%ni, %array], [%ni_more, %int], [%ni_more, %maybe_error]
  %i_next = add i64 %i, 1
  br label %loop
run:
  %kernel_word = call i64 @word(ptr %table, i64 0)
  %kernel = inttoptr i64 %kernel_word to ptr
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  br label %answer
refuse:
  br label %answer
answer:
  %answer_value = phi i64 [%status, %run], [-1, %refuse]
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %answer_value)
  ret ptr %result
fail:
  ret ptr null
}
"""

# f(*operands) -> ndarray | status | None.  Of two operands one may be a number, if there is a scalar kernel for it.
# Table: [inputs, full kernel, left-scalar kernel, right-scalar kernel, result descr, inputs' descr words].
_ELEMENTWISE = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [9 x i64]
  %ints = alloca [1 x i64]
  %number_cell = alloca i64
  %table = call ptr @table_of(ptr %self)
  %inputs = call i64 @word(ptr %table, i64 0)
  %right_count = icmp eq i64 %inputs, %nargs
  br i1 %right_count, label %loop, label %refuse
loop:
  %i = phi i64 [0, %entry], [%i_next, %good]
  %number = phi i64 [-1, %entry], [%number_next, %good]
  %end = icmp eq i64 %i, %inputs
  br i1 %end, label %operands, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %slot = add i64 %i, 5
  %expected = call i64 @word(ptr %table, i64 %slot)
  %is_good = call i1 @is_array(ptr %arg, i64 %expected, i32 257)
  br i1 %is_good, label %array, label %other_kind
array:
  %data = call i64 @word(ptr %arg, i64 2)
  br label %good

other_kind:
  %is_pair = icmp eq i64 %inputs, 2
  %is_only = icmp eq i64 %number, -1
  %may_be_number = and i1 %is_pair, %is_only
  br i1 %may_be_number, label %number_kernel, label %refuse
number_kernel:
  %number_slot = add i64 %i, 2
  %number_address = call i64 @word(ptr %table, i64 %number_slot)
  %has_kernel = icmp ne i64 %number_address, 0
  %type_number = lshr i64 %expected, 32
  %single = icmp eq i64 %type_number, 11
  %double = icmp eq i64 %type_number, 12
  %floating = or i1 %single, %double
  %takes_numbers = and i1 %has_kernel, %floating
  br i1 %takes_numbers, label %number_type, label %refuse
number_type:
  %is_float = call i1 @has_type(ptr %arg, ptr @twingrad_PyFloat_Type)
  br i1 %is_float, label %float, label %not_float
not_float:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int, label %refuse
int:
  %int_value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  %int_double = sitofp i64 %int_value to double
  %int_single = sitofp i64 %int_value to float
  %doubtful = icmp eq i64 %int_value, -1
  br i1 %doubtful, label %maybe_error, label %store_number
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %store_number, label %too_large
too_large:
  call void @twingrad_PyErr_Clear()
  br label %refuse
float:
  %float_p = getelementptr i8, ptr %arg, i64 16
  %float_double = load double, ptr %float_p
  %float_single = fptrunc double %float_double to float
  br label %store_number
store_number:
  %as_double = phi double [%float_double, %float], [%int_double, %int], [%int_double, %maybe_error]
  %as_single = phi float [%float_single, %float], [%int_single, %int], [%int_single, %maybe_error]
  br i1 %single, label %store_single, label %store_double
store_single:
  store float %as_single, ptr %number_cell
  br label %number_stored
store_double:
  store double %as_double, ptr %number_cell
  br label %number_stored
number_stored:
  %number_data = ptrtoint ptr %number_cell to i64
  br label %good
good:
  %buffer = phi i64 [%data, %array], [%number_data, %number_stored]
  %number_next = phi i64 [%number, %array], [%i, %number_stored]
  call void @set_word(ptr %bufs, i64 %i, i64 %buffer)
  %i_next = add i64 %i, 1
  br label %loop

operands:
  %no_number = icmp eq i64 %number, -1
  br i1 %no_number, label %shapes, label %beside_number
beside_number:
  %array_index = sub i64 1, %number
  %beside_word = call i64 @word(ptr %args, i64 %array_index)
  %beside = inttoptr i64 %beside_word to ptr
  %beside_nd = call i64 @rank_of(ptr %beside)
  %beside_dims = call ptr @pointer_at(ptr %beside, i64 32)
  %beside_slot = add i64 %number, 2
  %beside_kernel = call i64 @word(ptr %table, i64 %beside_slot)
  br label %make
shapes:
  %first_word = call i64 @word(ptr %args, i64 0)
  %first = inttoptr i64 %first_word to ptr
  %nd = call i64 @rank_of(ptr %first)
  %dims = call ptr @pointer_at(ptr %first, i64 32)
  %full = call i64 @word(ptr %table, i64 1)
  br label %compare
compare:
  %j = phi i64 [1, %shapes], [%j_next, %same_rank]
  %all_same = icmp eq i64 %j, %inputs
  br i1 %all_same, label %make, label %compare_item
compare_item:
  %other_word = call i64 @word(ptr %args, i64 %j)
  %other = inttoptr i64 %other_word to ptr
  %other_nd = call i64 @rank_of(ptr %other)
  %other_dims = call ptr @pointer_at(ptr %other, i64 32)
  %j_next = add i64 %j, 1
  %rank_equal = icmp eq i64 %nd, %other_nd
  br i1 %rank_equal, label %same_rank, label %scalar
same_rank:
  %dims_equal = call i1 @same_words(ptr %dims, ptr %other_dims, i64 %nd)
  br i1 %dims_equal, label %compare, label %refuse
scalar:
  %binary = icmp eq i64 %inputs, 2
  br i1 %binary, label %scalar_binary, label %refuse
scalar_binary:
  %is_left = icmp eq i64 %nd, 0
  %is_right = icmp eq i64 %other_nd, 0
  %one_scalar = or i1 %is_left, %is_right
  br i1 %one_scalar, label %scalar_kernel, label %refuse
scalar_kernel:
  %left_kernel = call i64 @word(ptr %table, i64 2)
  %right_kernel = call i64 @word(ptr %table, i64 3)
  %scalar_address = select i1 %is_left, i64 %left_kernel, i64 %right_kernel
  %scalar_nd = select i1 %is_left, i64 %other_nd, i64 %nd
  %scalar_dims = select i1 %is_left, ptr %other_dims, ptr %dims
  %exists = icmp ne i64 %scalar_address, 0
  br i1 %exists, label %make, label %refuse
make:
  %kernel_word = phi i64 [%full, %compare], [%scalar_address, %scalar_kernel], [%beside_kernel, %beside_number]
  %out_nd = phi i64 [%nd, %compare], [%scalar_nd, %scalar_kernel], [%beside_nd, %beside_number]
  %out_dims = phi ptr [%dims, %compare], [%scalar_dims, %scalar_kernel], [%beside_dims, %beside_number]
  br label %product
product:
  %k = phi i64 [0, %make], [%k_next, %product_body]
  %n = phi i64 [1, %make], [%n_next, %product_body]
  %product_end = icmp eq i64 %k, %out_nd
  br i1 %product_end, label %allocate, label %product_body
product_body:
  %dim = call i64 @word(ptr %out_dims, i64 %k)
  %n_next = mul i64 %n, %dim
  %k_next = add i64 %k, 1
  br label %product
allocate:
  %descr_word = call i64 @word(ptr %table, i64 4)
  %out = call ptr @new_array(i64 %descr_word, i64 %out_nd, ptr %out_dims)
  %no_memory = icmp eq ptr %out, null
  br i1 %no_memory, label %fail, label %run
run:
  %out_data = call i64 @word(ptr %out, i64 2)
  call void @set_word(ptr %bufs, i64 %inputs, i64 %out_data)
  call void @set_word(ptr %ints, i64 0, i64 %n)
  %kernel = inttoptr i64 %kernel_word to ptr
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %done, label %failed
done:
  ret ptr %out
failed:
  call void @twingrad_Py_DecRef(ptr %out)
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %status)
  ret ptr %result
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
fail:
  ret ptr null
}
"""


_BODIES = {
    "call": _CALL, "elementwise": _ELEMENTWISE, "fixed": FIXED, "find": FIND, "run": RUN, "view": VIEW, "steps": STEPS,
    "extent": EXTENT, "free": EXECUTE + OBJECTS + FREE,
}  # fmt: skip


def module_text(symbol: str) -> str:
    """Return the LLVM IR of one builtin."""
    body = _BODIES[symbol]
    return PRELUDE + body.replace("SYMBOL", f"twingrad_builtin_{symbol}")
