#include "jail/bpf_verdict.h"

#include <string.h>

namespace firestop::jail {

std::optional<uint32_t> verdict(const std::vector<sock_filter>& program, const seccomp_data& call) {
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {};
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& i = program[at];
    const uint32_t operand = BPF_SRC(i.code) == BPF_X ? x : i.k;
    const auto jump = [&](bool taken) { at += taken ? i.jt : i.jf; };
    switch (BPF_CLASS(i.code)) {
      case BPF_LD:
        if (BPF_MODE(i.code) == BPF_ABS) {
          if (i.k % 4 != 0 || i.k + 4 > sizeof call) return std::nullopt;
          ::memcpy(&a, reinterpret_cast<const char*>(&call) + i.k, 4);
        } else if (BPF_MODE(i.code) == BPF_IMM) {
          a = i.k;
        } else if (BPF_MODE(i.code) == BPF_MEM && i.k < BPF_MEMWORDS) {
          a = memory[i.k];
        } else {
          return std::nullopt;
        }
        break;
      case BPF_ST:
        if (i.k >= BPF_MEMWORDS) return std::nullopt;
        memory[i.k] = a;
        break;
      case BPF_ALU:
        if (BPF_OP(i.code) == BPF_AND)
          a &= operand;
        else if (BPF_OP(i.code) == BPF_OR)
          a |= operand;
        else
          return std::nullopt;
        break;
      case BPF_JMP:
        switch (BPF_OP(i.code)) {
          case BPF_JA:
            at += i.k;
            break;
          case BPF_JEQ:
            jump(a == operand);
            break;
          case BPF_JGT:
            jump(a > operand);
            break;
          case BPF_JGE:
            jump(a >= operand);
            break;
          case BPF_JSET:
            jump((a & operand) != 0);
            break;
          default:
            return std::nullopt;
        }
        break;
      case BPF_MISC:
        if (BPF_MISCOP(i.code) == BPF_TAX)
          x = a;
        else
          a = x;
        break;
      case BPF_RET:
        return BPF_RVAL(i.code) == BPF_A ? a : i.k;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace firestop::jail
