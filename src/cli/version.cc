#include "cli/version.h"

namespace firestop::cli {

const char* version() {
  return FIRESTOP_VERSION;
}

}  // namespace firestop::cli
