#include "base/version.h"

namespace firestop {

const char* version() {
  return FIRESTOP_VERSION;
}

}  // namespace firestop
