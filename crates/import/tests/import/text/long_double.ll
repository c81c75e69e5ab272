; Calculations in long double move out; what starts from constants and integers is inactive, what starts from floats may not be. Calls that write to memory behind pointers say so.

define double @counts(double %x, i32 %n) {
  %a = call x86_fp80 @logl(x86_fp80 0xK401F8000000000000000)
  %b = sitofp i32 %n to x86_fp80
  %c = fdiv x86_fp80 %a, %b
  %k = fptoui x86_fp80 %c to i64
  %d = uitofp i64 %k to double
  %e = fmul double %x, %d
  ret double %e
}

define double @widens(double %x) {
  %a = fpext double %x to x86_fp80
  %b = fmul x86_fp80 %a, %a
  %c = fptrunc x86_fp80 %b to double
  ret double %c
}

define i32 @scans(ptr %text, ptr %format, ptr %to) {
  %n = call i32 (ptr, ptr, ...) @sscanf(ptr %text, ptr %format, ptr %to)
  ret i32 %n
}

declare x86_fp80 @logl(x86_fp80)
declare i32 @sscanf(ptr, ptr, ...)
