// Belongs to stops_unknown_target.c.
#include <dlfcn.h>
void *choose(void) { return dlsym(RTLD_DEFAULT, "cbrt"); }
