! Solves the system of a chain of springs, with rows and columns counted from 1, then again with other values. Checks b - A x itself.
program chain
    use, intrinsic :: iso_c_binding
    use declive
    implicit none
    integer, parameter :: n = 1000
    integer(c_int32_t), target :: row_ptr(n + 1), col_idx(3*n)
    real(c_double), target :: values(3*n), b(n), x(n)
    real(c_double) :: worst
    type(declive_outcome) :: outcome
    type(c_ptr) :: s
    integer :: row, column, nnz

    nnz = 0
    do row = 1, n
        row_ptr(row) = nnz + 1
        do column = max(row - 1, 1), min(row + 1, n)
            nnz = nnz + 1
            col_idx(nnz) = column
            values(nnz) = merge(2.5d0, -1d0, column == row)
        end do
        b(row) = row
    end do
    row_ptr(n + 1) = nnz + 1

    call check(declive_create(s))
    call check(declive_set(s, "rtol"//c_null_char, "1e-10"//c_null_char))
    call check(declive_set_csr_i32(s, int(n, c_int64_t), int(n, c_int64_t), int(nnz, c_int64_t), &
                                   c_loc(row_ptr), c_loc(col_idx), c_loc(values), declive_one_based))
    call check(declive_solve(s, c_loc(b), c_loc(x)))
    worst = residual()
    call check(declive_get_outcome(s, 0_c_int64_t, outcome, c_sizeof(outcome)))
    print '(a, ": ", a, ", ", i0, " iterations, ||b - A x|| / ||b|| =", es9.2)', declive_text(declive_method(s)), &
        declive_text(declive_reason_text(s, 0_c_int64_t)), outcome%iterations, worst

    values(:nnz) = 2*values(:nnz)
    call check(declive_update_values(s, int(nnz, c_int64_t), c_loc(values)))
    call check(declive_solve(s, c_loc(b), c_loc(x)))
    worst = max(worst, residual())
    print '("with other values:", es9.2)', residual()
    call check(declive_destroy(s))
    if (worst > 1.1d-10) error stop 1

contains

    ! ||b - A x|| / ||b||
    real(c_double) function residual()
        real(c_double) :: r(n)
        integer :: i, k
        r = b
        do i = 1, n
            do k = row_ptr(i), row_ptr(i + 1) - 1
                r(i) = r(i) - values(k)*x(col_idx(k))
            end do
        end do
        residual = norm2(r)/norm2(b)
    end function

    subroutine check(code)
        integer(c_int), intent(in) :: code
        if (code /= declive_ok) then
            print '(a)', declive_text(declive_last_error())
            error stop 1
        end if
    end subroutine
end program
