// Functions of the C and C++ libraries through which active values go and that come without source: what a derivative is made from where a program calls them. Written for
// Ferrozyme after what they are specified to do; the program itself keeps the library's.
#include <stddef.h>

void *malloc(size_t);
void free(void *);

// C: qsort, here stable. Elements are moved as a whole, so that what they hold stays known.
__attribute__((always_inline)) void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  if (count < 2)
    return;
  char *from = base, *spare = malloc(count * size);
  char *to = spare;
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t start = 0; start < count; start += 2 * width) {
      size_t middle = start + width < count ? start + width : count;
      size_t end = start + 2 * width < count ? start + 2 * width : count;
      size_t left = start, right = middle;
      for (size_t next = start; next < end; next++) {
        int take_left = right >= end || (left < middle && compare(from + left * size, from + right * size) <= 0);
        size_t taken = take_left ? left++ : right++;
        __builtin_memcpy(to + next * size, from + taken * size, size);
      }
    }
    char *other = from;
    from = to;
    to = other;
  }
  if (from != (char *)base)
    __builtin_memcpy(base, from, count * size);
  free(spare);
}

// C: bsearch.
__attribute__((always_inline)) void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  size_t start = 0, end = count;
  while (start < end) {
    size_t middle = start + (end - start) / 2;
    const char *element = (const char *)base + middle * size;
    int order = compare(key, element);
    if (order == 0)
      return (void *)element;
    if (order < 0)
      end = middle;
    else
      start = middle + 1;
  }
  return 0;
}

// C with _FORTIFY_SOURCE: what is known of the size of memory is checked.
__attribute__((noreturn)) void __chk_fail(void);

__attribute__((always_inline)) void *__memcpy_chk(void *to, const void *from, size_t size, size_t room) {
  if (size > room)
    __chk_fail();
  return __builtin_memcpy(to, from, size);
}

__attribute__((always_inline)) void *__memmove_chk(void *to, const void *from, size_t size, size_t room) {
  if (size > room)
    __chk_fail();
  return __builtin_memmove(to, from, size);
}

__attribute__((always_inline)) void *__memset_chk(void *to, int value, size_t size, size_t room) {
  if (size > room)
    __chk_fail();
  return __builtin_memset(to, value, size);
}

// POSIX threads: pthread_once, with the marks that glibc leaves.
__attribute__((always_inline)) int pthread_once(int *once, void (*first)(void)) {
  if (*once != 2) {
    first();
    *once = 2;
  }
  return 0;
}

// C++: std::list. A list is a ring of nodes.
struct list_node {
  struct list_node *next, *previous;
};

void _ZNSt8__detail15_List_node_base7_M_hookEPS0_(struct list_node *node, struct list_node *before) {
  node->next = before;
  node->previous = before->previous;
  before->previous->next = node;
  before->previous = node;
}

void _ZNSt8__detail15_List_node_base9_M_unhookEv(struct list_node *node) {
  node->previous->next = node->next;
  node->next->previous = node->previous;
}

void _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(struct list_node *before, struct list_node *first, struct list_node *last) {
  if (before == last)
    return;
  struct list_node *end = last->previous;
  first->previous->next = last;
  last->previous = first->previous;
  first->previous = before->previous;
  before->previous->next = first;
  end->next = before;
  before->previous = end;
}

void _ZNSt8__detail15_List_node_base10_M_reverseEv(struct list_node *ring) {
  struct list_node *node = ring;
  do {
    struct list_node *next = node->next;
    node->next = node->previous;
    node->previous = next;
    node = next;
  } while (node != ring);
}

// Gives a ring the nodes that were between `first` and `last` in the ring `old`.
static void close_ring(struct list_node *ring, struct list_node *first, struct list_node *last, struct list_node *old) {
  if (first == old) {
    ring->next = ring->previous = ring;
    return;
  }
  ring->next = first;
  ring->previous = last;
  first->previous = last->next = ring;
}

void _ZNSt8__detail15_List_node_base4swapERS0_S1_(struct list_node *a, struct list_node *b) {
  struct list_node *a_first = a->next, *a_last = a->previous, *b_first = b->next, *b_last = b->previous;
  close_ring(a, b_first, b_last, b);
  close_ring(b, a_first, a_last, a);
}

// C++: std::map and std::set. The header's parent is the root, its left the first node, its right the last.
enum { RED, BLACK };
struct tree_node {
  int colour;
  struct tree_node *parent, *left, *right;
};

__attribute__((noinline)) struct tree_node *_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(struct tree_node *node) {
  if (node->right) {
    node = node->right;
    while (node->left)
      node = node->left;
    return node;
  }
  struct tree_node *parent = node->parent;
  while (node == parent->right) {
    node = parent;
    parent = parent->parent;
  }
  // The last node of a tree whose root is the last: the header is its own grandparent.
  return node->right == parent ? node : parent;
}

const struct tree_node *_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(const struct tree_node *node) {
  return _ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base((struct tree_node *)node);
}

struct tree_node *_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(struct tree_node *node) {
  if (node->colour == RED && node->parent->parent == node)
    return node->right; // the header
  if (node->left) {
    node = node->left;
    while (node->right)
      node = node->right;
    return node;
  }
  struct tree_node *parent = node->parent;
  while (node == parent->left) {
    node = parent;
    parent = parent->parent;
  }
  return parent;
}

const struct tree_node *_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(const struct tree_node *node) {
  return _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base((struct tree_node *)node);
}

// Puts `by` into the place of `node` below its parent.
static void replace_child(struct tree_node *header, struct tree_node *node, struct tree_node *by) {
  struct tree_node *parent = node->parent;
  if (header->parent == node)
    header->parent = by;
  else if (parent->left == node)
    parent->left = by;
  else
    parent->right = by;
  if (by)
    by->parent = parent;
}

static void rotate_left(struct tree_node *header, struct tree_node *node) {
  struct tree_node *up = node->right;
  node->right = up->left;
  if (up->left)
    up->left->parent = node;
  replace_child(header, node, up);
  up->left = node;
  node->parent = up;
}

static void rotate_right(struct tree_node *header, struct tree_node *node) {
  struct tree_node *up = node->left;
  node->left = up->right;
  if (up->right)
    up->right->parent = node;
  replace_child(header, node, up);
  up->right = node;
  node->parent = up;
}

void _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(_Bool left, struct tree_node *node, struct tree_node *parent, struct tree_node *header) {
  node->parent = parent;
  node->left = node->right = NULL;
  node->colour = RED;
  if (parent == header) {
    header->parent = header->left = header->right = node;
  } else if (left) {
    parent->left = node;
    if (parent == header->left)
      header->left = node;
  } else {
    parent->right = node;
    if (parent == header->right)
      header->right = node;
  }
  while (node != header->parent && node->parent->colour == RED) {
    struct tree_node *above = node->parent, *top = above->parent;
    int on_left = above == top->left;
    struct tree_node *uncle = on_left ? top->right : top->left;
    if (uncle && uncle->colour == RED) {
      above->colour = uncle->colour = BLACK;
      top->colour = RED;
      node = top;
      continue;
    }
    if (on_left) {
      if (node == above->right) {
        node = above;
        rotate_left(header, node);
      }
      node->parent->colour = BLACK;
      top->colour = RED;
      rotate_right(header, top);
    } else {
      if (node == above->left) {
        node = above;
        rotate_right(header, node);
      }
      node->parent->colour = BLACK;
      top->colour = RED;
      rotate_left(header, top);
    }
  }
  header->parent->colour = BLACK;
}

struct tree_node *_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(struct tree_node *node, struct tree_node *header) {
  struct tree_node *next = NULL, *below, *above;
  int colour = node->colour;
  if (header->left == node)
    header->left = header->parent == node && !node->right ? header : _ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(node);
  if (header->right == node)
    header->right = header->parent == node && !node->left ? header : _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(node);
  if (!node->left || !node->right) {
    below = node->left ? node->left : node->right;
    above = node->parent;
    replace_child(header, node, below);
  } else {
    // The next node takes its place.
    next = node->right;
    while (next->left)
      next = next->left;
    colour = next->colour;
    below = next->right;
    if (next->parent == node) {
      above = next;
    } else {
      above = next->parent;
      replace_child(header, next, below);
      next->right = node->right;
      next->right->parent = next;
    }
    replace_child(header, node, next);
    next->left = node->left;
    next->left->parent = next;
    next->colour = node->colour;
  }
  if (colour == BLACK) {
    while (below != header->parent && (!below || below->colour == BLACK)) {
      int on_left = below == above->left;
      struct tree_node *sibling = on_left ? above->right : above->left;
      if (sibling->colour == RED) {
        sibling->colour = BLACK;
        above->colour = RED;
        if (on_left)
          rotate_left(header, above);
        else
          rotate_right(header, above);
        sibling = on_left ? above->right : above->left;
      }
      struct tree_node *near = on_left ? sibling->left : sibling->right;
      struct tree_node *far = on_left ? sibling->right : sibling->left;
      if ((!near || near->colour == BLACK) && (!far || far->colour == BLACK)) {
        sibling->colour = RED;
        below = above;
        above = above->parent;
        continue;
      }
      if (!far || far->colour == BLACK) {
        near->colour = BLACK;
        sibling->colour = RED;
        if (on_left)
          rotate_right(header, sibling);
        else
          rotate_left(header, sibling);
        sibling = on_left ? above->right : above->left;
        far = on_left ? sibling->right : sibling->left;
      }
      sibling->colour = above->colour;
      above->colour = BLACK;
      if (far)
        far->colour = BLACK;
      if (on_left)
        rotate_left(header, above);
      else
        rotate_right(header, above);
      break;
    }
    if (below)
      below->colour = BLACK;
  }
  return node;
}

// OpenMP's runtime as derivatives see it: parallel regions run on the thread that comes to them, mostly as a team of one. Regions themselves are called by the driver, which puts the size of the team where a description of the
// source was.
typedef struct ident ident;

// Schedules in which chunks go round, and in which each thread gets one part that is a multiple of a chunk; ordered loops have numbers of their own.
enum { CHUNKED = 33, CHUNKED_ORDERED = 65, BALANCED_CHUNKED = 45, SCHEDULES = 0xffff };

// In a team of one the whole range is the thread's; a stride of its length ends loops over chunks after the first.
#define STATIC_INIT(name, integer)                                                                                                                                                       \
  __attribute__((always_inline)) void name(ident *size, int thread, int schedule, int *last, integer *lower, integer *upper, integer *stride, integer increment, integer chunk) {        \
    integer team = (integer)(long)size;                                                                                                                                                  \
    if (team <= 1) {                                                                                                                                                                     \
      *last = 1;                                                                                                                                                                         \
      *stride = *upper - *lower + increment;                                                                                                                                             \
      return;                                                                                                                                                                            \
    }                                                                                                                                                                                    \
    integer end = *upper;                                                                                                                                                                \
    integer count = (*upper - *lower) / increment + 1;                                                                                                                                   \
    int kind = schedule & SCHEDULES;                                                                                                                                                     \
    if (kind == CHUNKED || kind == CHUNKED_ORDERED) {                                                                                                                                    \
      if (chunk < 1)                                                                                                                                                                     \
        chunk = 1;                                                                                                                                                                       \
      *last = (integer)thread == (count - 1) / chunk % team;                                                                                                                             \
      *stride = chunk * increment * team;                                                                                                                                                \
      *lower += chunk * increment * (integer)thread;                                                                                                                                     \
      *upper = *lower + (chunk - 1) * increment;                                                                                                                                         \
      return;                                                                                                                                                                            \
    }                                                                                                                                                                                    \
    integer each = count / team, more = count % team;                                                                                                                                    \
    integer first = (integer)thread * each + ((integer)thread < more ? (integer)thread : more), mine = each + ((integer)thread < more);                                                  \
    if (kind == BALANCED_CHUNKED) {                                                                                                                                                      \
      each = ((count + team - 1) / team + chunk - 1) / chunk * chunk;                                                                                                                    \
      first = (integer)thread * each < count ? (integer)thread * each : count;                                                                                                           \
      mine = each < count - first ? each : count - first;                                                                                                                                \
    }                                                                                                                                                                                    \
    *last = mine > 0 && first + mine == count;                                                                                                                                           \
    *stride = end - *lower + increment;                                                                                                                                                  \
    *lower += first * increment;                                                                                                                                                         \
    *upper = *lower + mine * increment - increment;                                                                                                                                      \
  }
STATIC_INIT(__kmpc_for_static_init_4, int)
STATIC_INIT(__kmpc_for_static_init_4u, unsigned)
STATIC_INIT(__kmpc_for_static_init_8, long long)
STATIC_INIT(__kmpc_for_static_init_8u, unsigned long long)

#define NOTHING(name, ...)                                                                                                                                                               \
  __attribute__((always_inline)) void name(ident *place, int thread, ##__VA_ARGS__) {}
NOTHING(__kmpc_for_static_fini)
NOTHING(__kmpc_barrier)
NOTHING(__kmpc_push_num_threads, int count)
NOTHING(__kmpc_serialized_parallel)
NOTHING(__kmpc_end_serialized_parallel)
NOTHING(__kmpc_critical, void *lock)
NOTHING(__kmpc_critical_with_hint, void *lock, unsigned hint)
NOTHING(__kmpc_end_critical, void *lock)
NOTHING(__kmpc_end_single)
NOTHING(__kmpc_end_master)
NOTHING(__kmpc_end_masked)
NOTHING(__kmpc_ordered)
NOTHING(__kmpc_end_ordered)
NOTHING(__kmpc_dispatch_fini_4)
NOTHING(__kmpc_dispatch_fini_4u)
NOTHING(__kmpc_dispatch_fini_8)
NOTHING(__kmpc_dispatch_fini_8u)
NOTHING(__kmpc_dispatch_deinit)
NOTHING(__kmpc_end_reduce, void *lock)
NOTHING(__kmpc_end_reduce_nowait, void *lock)

// Who gets 1 does it.
#define CHOSEN(name, ...)                                                                                                                                                                \
  __attribute__((always_inline)) int name(ident *place, int thread, ##__VA_ARGS__) { return 1; }
CHOSEN(__kmpc_single)
CHOSEN(__kmpc_master)
CHOSEN(__kmpc_masked, int filter)
CHOSEN(__kmpc_reduce, int count, size_t size, void *data, void (*reduce)(void *, void *), void *lock)
CHOSEN(__kmpc_reduce_nowait, int count, size_t size, void *data, void (*reduce)(void *, void *), void *lock)

__attribute__((always_inline)) int __kmpc_global_thread_num(ident *place) { return 0; }
__attribute__((always_inline)) void __kmpc_flush(ident *place) {}
__attribute__((always_inline)) int omp_get_thread_num(void) { return 0; }
__attribute__((always_inline)) int omp_get_num_threads(void) { return 1; }
__attribute__((always_inline)) int omp_in_parallel(void) { return 1; }
