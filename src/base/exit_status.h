// The numbers with which `firestop` ends. Below 240 they are the sandboxed command's own (128+n after
// signal n); from 240 up they are Firestop's. One number, one kind of cause; docs/exit-codes.md.
#pragma once

namespace firestop {

enum class ExitStatus : int {
  kOk = 0,
  kUsage = 240,        // bad command line, manifest invalid
  kSignature = 241,    // manifest unsigned, or signature refused
  kCannotStart = 242,  // nothing ran: something needed is missing or was refused
  kRating = 243,       // the manifest's rating (deadline) was reached
  kCap = 244,          // a declared limit ended the run
  kHelper = 245,       // the machine, a helper process or the guest failed under way
  kResult = 246,       // the run ended, its result could not be imported
  kRecord = 247,       // the record of the run could not be kept: nothing goes on unrecorded
};

}  // namespace firestop
