; Panics with what is dropped on the way out become functions that do not return; calls that may unwind are calls.

declare void @panic(i64) noreturn cold
declare void @drop(ptr)
declare double @other(double)
declare i32 @personality(...)

define internal double @callee(double %x) {
  %1 = call double @other(double %x)
  ret double %1
}

define double @drops(ptr %p, i64 %n, double %x) personality ptr @personality {
entry:
  %slot = alloca i64, align 8
  %bad = icmp eq i64 %n, 0
  br i1 %bad, label %fail, label %good
good:
  %a = invoke double @callee(double %x) to label %next unwind label %cleanup
next:
  %b = invoke double @other(double %a) to label %done unwind label %cleanup
done:
  call void @drop(ptr %p)
  ret double %b
fail:
  store i64 %n, ptr %slot, align 8
  %m = load i64, ptr %slot, align 8
  invoke void @panic(i64 %m) to label %never unwind label %cleanup
never:
  unreachable
cleanup:
  %e = landingpad { ptr, i32 } cleanup
  call void @drop(ptr %p)
  resume { ptr, i32 } %e
}
