// The egress process without the rest of firestop, for the tests that start one.
#include "egress/process.h"

int main() {
  return firestop::egress::process_main();
}
