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

; A landing pad that others share, with a value that depends on where it is reached from.
define double @shares(ptr %p, ptr %q, double %x, i1 %c) personality ptr @personality {
entry:
  br i1 %c, label %one, label %two
one:
  %a = invoke double @callee(double %x) to label %done unwind label %cleanup
two:
  %b = invoke double @callee(double 2.0) to label %done unwind label %cleanup
done:
  %r = phi double [ %a, %one ], [ %b, %two ]
  ret double %r
cleanup:
  %v = phi ptr [ %p, %one ], [ %q, %two ]
  %e = landingpad { ptr, i32 } cleanup
  %again = icmp eq ptr %v, null
  br i1 %again, label %out, label %drop
drop:
  call void @drop(ptr %v)
  br label %out
out:
  resume { ptr, i32 } %e
}

; Nothing is done on the way out.
define double @passes(double %x) personality ptr @personality {
  %a = invoke double @callee(double %x) to label %done unwind label %cleanup
done:
  ret double %a
cleanup:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}

; What is caught here cannot be imported.
define internal double @catches(double %x) personality ptr @personality {
  %a = invoke double @callee(double %x) to label %done unwind label %caught
done:
  ret double %a
caught:
  %e = landingpad { ptr, i32 } catch ptr null
  ret double 0.0
}

define double @calls_what_catches(double %x) {
  %a = call double @catches(double %x)
  ret double %a
}

; In C++, an exception that would be caught ends the program.
define double @handles(double %x) personality ptr @__gxx_personality_v0 {
entry:
  %a = invoke double @other(double %x) to label %done unwind label %pad
pad:
  %e = landingpad { ptr, i32 } catch ptr null
  %o = extractvalue { ptr, i32 } %e, 0
  %c = call ptr @__cxa_begin_catch(ptr %o)
  call void @__cxa_end_catch()
  br label %done
done:
  %r = phi double [ %a, %entry ], [ 0.0, %pad ]
  ret double %r
}

declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
