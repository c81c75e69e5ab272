// flags: -lm
// A union of a number and an address that is handed on by value: by branches, a loop, functions and an array.
#include "differences.h"
#include <stdlib.h>

typedef struct {
  long is_address;
  union {
    double number;
    double *address;
  };
} word;

static word word_of(double x, int boxed) {
  word w;
  w.is_address = boxed;
  if (boxed) {
    w.address = malloc(sizeof(double));
    *w.address = x;
  } else {
    w.number = x;
  }
  return w;
}

static double value(word w) {
  return w.is_address ? 4.0 * *w.address : w.number * w.number + w.number;
}

static void release(word w) {
  if (w.is_address)
    free(w.address);
}

static __attribute__((noinline)) word choose(int first, word one, word other) { return first ? one : other; }

static __attribute__((noinline)) void put(word w, word *list, double *numbers) {
  if (!w.is_address)
    *numbers += w.number;
  *list = w;
}

static double branches(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    word w = word_of(x[i], i % 2);
    sum += value(w);
    release(w);
  }
  return sum;
}

static double carried(double *x, int n) {
  double sum = 0;
  word last = word_of(0, 0);
  for (int i = 0; i < n; i++) {
    sum += value(last);
    release(last);
    last = word_of(x[i], i % 2);
  }
  sum += value(last);
  release(last);
  return sum;
}

static double chosen(double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    word none = word_of(0, 0), w = word_of(x[i], i % 2);
    sum += value(i % 3 ? choose(0, none, w) : choose(1, w, none));
    release(w);
  }
  return sum;
}

static double listed(double *x, int n) {
  word list[8];
  double sum = 0, numbers = 0, even = 0;
  for (int i = 0; i < n; i++) {
    put(word_of(x[i], i % 2), &list[i], &numbers);
    if (i % 2 == 0)
      even += x[i];
  }
  for (int i = 0; i < n; i++) {
    sum += value(list[i]);
    release(list[i]);
  }
  return sum + numbers - even;
}

static double function(double *x, int n) { return branches(x, n) + 2 * carried(x, n) + 3 * chosen(x, n) + 5 * listed(x, n); }
