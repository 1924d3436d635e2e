// A power, for tests: a jail without its system call filter, to see what the other walls hold by themselves.
#pragma once

namespace firestop::jail {

class Unfiltered {};

}  // namespace firestop::jail
