! The functions of declive for Fortran 2003. To be compiled with the program that uses it; declive.h tells what they do.
!
! Texts are those of C: they end with c_null_char, and declive_text makes a string of one that a function gives.
module declive
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: declive_ok = 0
    integer(c_int), parameter :: declive_not_converged = 1
    integer(c_int), parameter :: declive_input = 2
    integer(c_int), parameter :: declive_machine = 3
    integer(c_int), parameter :: declive_internal = 4

    integer(c_int), parameter :: declive_complex = 1
    integer(c_int), parameter :: declive_one_based = 2
    integer(c_int), parameter :: declive_borrow = 4
    integer(c_int), parameter :: declive_guess = 1

    integer(c_int), parameter :: declive_reason_converged = 0
    integer(c_int), parameter :: declive_reason_least_squares = 1
    integer(c_int), parameter :: declive_reason_max_iters = 2
    integer(c_int), parameter :: declive_reason_time_limit = 3
    integer(c_int), parameter :: declive_reason_stagnation = 4
    integer(c_int), parameter :: declive_reason_rounding = 5
    integer(c_int), parameter :: declive_reason_divergence = 6
    integer(c_int), parameter :: declive_reason_indefinite = 7
    integer(c_int), parameter :: declive_reason_singular = 8
    integer(c_int), parameter :: declive_reason_breakdown = 9
    integer(c_int), parameter :: declive_reason_non_finite = 10
    integer(c_int), parameter :: declive_reason_interrupted = 11
    integer(c_int), parameter :: declive_reason_other = 12

    type, bind(c) :: declive_outcome
        integer(c_int) :: reason
        integer(c_int) :: converged
        integer(c_int64_t) :: iterations
        integer(c_int64_t) :: restarts
        integer(c_int64_t) :: history_length
        real(c_double) :: relative_residual
        real(c_double) :: residual_2
        real(c_double) :: residual_inf
        real(c_double) :: rhs_2
        real(c_double) :: backward_error
        real(c_double) :: recurrence_relative_residual
        real(c_double) :: optimality
        real(c_double) :: compile_seconds
        real(c_double) :: upload_seconds
        real(c_double) :: solve_seconds
        real(c_double) :: gather_seconds
        real(c_double) :: verify_seconds
    end type

    interface
        function declive_version() bind(c, name="declive_version") result(text)
            import
            type(c_ptr) :: text
        end function

        function declive_last_error() bind(c, name="declive_last_error") result(text)
            import
            type(c_ptr) :: text
        end function

        function declive_options() bind(c, name="declive_options") result(text)
            import
            type(c_ptr) :: text
        end function

        function declive_close_idle() bind(c, name="declive_close_idle") result(code)
            import
            integer(c_int) :: code
        end function

        function declive_create(s) bind(c, name="declive_create") result(code)
            import
            type(c_ptr), intent(out) :: s
            integer(c_int) :: code
        end function

        function declive_destroy(s) bind(c, name="declive_destroy") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int) :: code
        end function

        function declive_set(s, name, value) bind(c, name="declive_set") result(code)
            import
            type(c_ptr), value :: s
            character(kind=c_char), intent(in) :: name(*), value(*)
            integer(c_int) :: code
        end function

        function declive_get(s, name) bind(c, name="declive_get") result(text)
            import
            type(c_ptr), value :: s
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr) :: text
        end function

        ! Arrays are c_loc of what has the attribute target, as they may be borrowed.
        function declive_set_csr_i32(s, n_rows, n_cols, nnz, row_ptr, col_idx, values, flags) &
            bind(c, name="declive_set_csr_i32") result(code)
            import
            type(c_ptr), value :: s, row_ptr, col_idx, values
            integer(c_int64_t), value :: n_rows, n_cols, nnz
            integer(c_int), value :: flags
            integer(c_int) :: code
        end function

        function declive_set_csr_i64(s, n_rows, n_cols, nnz, row_ptr, col_idx, values, flags) &
            bind(c, name="declive_set_csr_i64") result(code)
            import
            type(c_ptr), value :: s, row_ptr, col_idx, values
            integer(c_int64_t), value :: n_rows, n_cols, nnz
            integer(c_int), value :: flags
            integer(c_int) :: code
        end function

        function declive_set_csr_i64_i32(s, n_rows, n_cols, nnz, row_ptr, col_idx, values, flags) &
            bind(c, name="declive_set_csr_i64_i32") result(code)
            import
            type(c_ptr), value :: s, row_ptr, col_idx, values
            integer(c_int64_t), value :: n_rows, n_cols, nnz
            integer(c_int), value :: flags
            integer(c_int) :: code
        end function

        function declive_read(s, path) bind(c, name="declive_read") result(code)
            import
            type(c_ptr), value :: s
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: code
        end function

        function declive_rows(s) bind(c, name="declive_rows") result(n)
            import
            type(c_ptr), value :: s
            integer(c_int64_t) :: n
        end function

        function declive_cols(s) bind(c, name="declive_cols") result(n)
            import
            type(c_ptr), value :: s
            integer(c_int64_t) :: n
        end function

        function declive_nnz(s) bind(c, name="declive_nnz") result(n)
            import
            type(c_ptr), value :: s
            integer(c_int64_t) :: n
        end function

        function declive_is_complex(s) bind(c, name="declive_is_complex") result(is)
            import
            type(c_ptr), value :: s
            integer(c_int) :: is
        end function

        ! values is c_loc of an array.
        function declive_update_values(s, nnz, values) bind(c, name="declive_update_values") result(code)
            import
            type(c_ptr), value :: s, values
            integer(c_int64_t), value :: nnz
            integer(c_int) :: code
        end function

        function declive_set_coordinates(s, dim, nodes, coordinates) bind(c, name="declive_set_coordinates") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int), value :: dim
            integer(c_int64_t), value :: nodes
            real(c_double), intent(in) :: coordinates(*)
            integer(c_int) :: code
        end function

        function declive_set_near_null(s, n, count, vectors) bind(c, name="declive_set_near_null") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int64_t), value :: n
            integer(c_int), value :: count
            real(c_double), intent(in) :: vectors(*)
            integer(c_int) :: code
        end function

        ! apply is c_funloc of a subroutine with bind(c), or c_null_funptr.
        function declive_set_preconditioner(s, apply, user) bind(c, name="declive_set_preconditioner") result(code)
            import
            type(c_ptr), value :: s, user
            type(c_funptr), value :: apply
            integer(c_int) :: code
        end function

        ! progress is c_funloc of a function with bind(c), or c_null_funptr.
        function declive_set_progress(s, progress, user) bind(c, name="declive_set_progress") result(code)
            import
            type(c_ptr), value :: s, user
            type(c_funptr), value :: progress
            integer(c_int) :: code
        end function

        function declive_setup(s) bind(c, name="declive_setup") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int) :: code
        end function

        ! b and x are c_loc of real or complex arrays, as the matrix is.
        function declive_solve(s, b, x) bind(c, name="declive_solve") result(code)
            import
            type(c_ptr), value :: s, b, x
            integer(c_int) :: code
        end function

        function declive_solve_columns(s, columns, b, x, flags) bind(c, name="declive_solve_columns") result(code)
            import
            type(c_ptr), value :: s, b, x
            integer(c_int64_t), value :: columns
            integer(c_int), value :: flags
            integer(c_int) :: code
        end function

        function declive_cancel(s) bind(c, name="declive_cancel") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int) :: code
        end function

        ! size is c_sizeof(outcome).
        function declive_get_outcome(s, column, outcome, size) bind(c, name="declive_get_outcome") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int64_t), value :: column
            type(declive_outcome), intent(out) :: outcome
            integer(c_size_t), value :: size
            integer(c_int) :: code
        end function

        function declive_reason_text(s, column) bind(c, name="declive_reason_text") result(text)
            import
            type(c_ptr), value :: s
            integer(c_int64_t), value :: column
            type(c_ptr) :: text
        end function

        function declive_history(s, column, history, length) bind(c, name="declive_history") result(code)
            import
            type(c_ptr), value :: s
            integer(c_int64_t), value :: column
            type(c_ptr), intent(out) :: history
            integer(c_int64_t), intent(out) :: length
            integer(c_int) :: code
        end function

        function declive_method(s) bind(c, name="declive_method") result(text)
            import
            type(c_ptr), value :: s
            type(c_ptr) :: text
        end function

        function declive_precond(s) bind(c, name="declive_precond") result(text)
            import
            type(c_ptr), value :: s
            type(c_ptr) :: text
        end function

        function declive_report(s) bind(c, name="declive_report") result(text)
            import
            type(c_ptr), value :: s
            type(c_ptr) :: text
        end function
    end interface

contains

    ! A text that a function gives, as a string; empty for none.
    function declive_text(from) result(text)
        type(c_ptr), intent(in) :: from
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: length, k
        interface
            pure function strlen(s) bind(c, name="strlen") result(length)
                import
                type(c_ptr), value :: s
                integer(c_size_t) :: length
            end function
        end interface
        length = 0
        if (c_associated(from)) length = int(strlen(from))
        allocate (character(length) :: text)
        if (length == 0) return
        call c_f_pointer(from, letters, [length])
        do k = 1, length
            text(k:k) = letters(k)
        end do
    end function
end module
