// flags: -lm
// Functions with variable arguments: floats, integers and pointers among them, lists that are copied and handed on, more arguments than there are registers, and output of one's own.
#include "check.h"
#include <stdarg.h>
#include <stdio.h>

double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);

static double weighted(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += va_arg(list, double) * (i + 1);
  va_end(list);
  return sum;
}

double floats(double x) { return weighted(3, x, x * x, 2.0) * x; }

double many(double x) { return weighted(12, x, x, x, x, x, x, x, x, x, x * x, x, x); }

static double twice(int count, va_list list) {
  va_list again;
  va_copy(again, list);
  double sum = 0, product = 1;
  for (int i = 0; i < count; i++)
    sum += va_arg(list, double);
  for (int i = 0; i < count; i++)
    product *= va_arg(again, double);
  va_end(again);
  return sum * product;
}

static double handed_on(int count, ...) {
  va_list list;
  va_start(list, count);
  double result = twice(count, list);
  va_end(list);
  return result;
}

double lists(double x) { return handed_on(2, x, x * x); }

// Each letter says what the next argument is.
static double mixed(const char *kinds, ...) {
  va_list list;
  va_start(list, kinds);
  double sum = 0;
  for (; *kinds; kinds++) {
    if (*kinds == 'd')
      sum += va_arg(list, double);
    else if (*kinds == 'i')
      sum *= va_arg(list, int);
    else
      sum += *va_arg(list, double *) * 2;
  }
  va_end(list);
  return sum;
}

double kinds(double x) {
  double square = x * x;
  return mixed("didp", x, 3, square, &square);
}

static void scale(double factor, int count, ...) {
  va_list list;
  va_start(list, count);
  for (int i = 0; i < count; i++)
    *va_arg(list, double *) *= factor;
  va_end(list);
}

double pointers(double x) {
  double a = x, b = x * x;
  scale(x, 2, &a, &b);
  return a + b;
}

static char text[100];

static int say(const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return length;
}

double spoken(double x) {
  double y = x * x;
  say("%.2f and %.2f", x, y);
  return y * x;
}

int main(void) {
  const double x = 1.3;
  double (*const functions[])(double) = {floats, many, lists, kinds, pointers, spoken};
  const double forward[] = {__enzyme_fwddiff((void *)floats, x, 1.0),   __enzyme_fwddiff((void *)many, x, 1.0),
                            __enzyme_fwddiff((void *)lists, x, 1.0),    __enzyme_fwddiff((void *)kinds, x, 1.0),
                            __enzyme_fwddiff((void *)pointers, x, 1.0), __enzyme_fwddiff((void *)spoken, x, 1.0)};
  const double reverse[] = {__enzyme_autodiff((void *)floats, x),   __enzyme_autodiff((void *)many, x),
                            __enzyme_autodiff((void *)lists, x),    __enzyme_autodiff((void *)kinds, x),
                            __enzyme_autodiff((void *)pointers, x), __enzyme_autodiff((void *)spoken, x)};
  for (int i = 0; i < 6; i++) {
    const double step = 1e-6, expected = (functions[i](x + step) - functions[i](x - step)) / (2 * step);
    CHECK_CLOSE(forward[i], expected, 1e-7);
    CHECK_CLOSE(reverse[i], expected, 1e-7);
  }
  return 0;
}
