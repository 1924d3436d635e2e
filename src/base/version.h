#pragma once

namespace firestop {

const char* version();  // of CMakeLists.txt: "0.1.0"

}  // namespace firestop
