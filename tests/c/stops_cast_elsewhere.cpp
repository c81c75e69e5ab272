// flags: -lm; stops: Ferrozyme: a dynamic_cast in a differentiated function changes the address (to a class at another offset of the object), which derivatives cannot follow [FZ0712]
// A cast to the second base of an object, which starts behind the first.
#include "check.h"

extern int enzyme_dup;
template <typename Return, typename... T> Return __enzyme_autodiff(void *, T...);

struct First {
  double a;
  virtual ~First() = default;
};
struct Second {
  double b;
  virtual ~Second() = default;
};
struct Both : First, Second {};

double function(First *object) {
  Second *second = dynamic_cast<Second *>(object);
  return second ? object->a * second->b : object->a;
}

int main() {
  Both both, shadow;
  both.a = 2;
  both.b = 3;
  shadow.a = shadow.b = 0;
  __enzyme_autodiff<void>((void *)function, enzyme_dup, static_cast<First *>(&both), static_cast<First *>(&shadow));
  return 0;
}
