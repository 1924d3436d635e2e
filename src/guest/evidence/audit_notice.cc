#include "guest/evidence/audit_notice.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <utility>
#include <vector>

namespace firestop::guest {
namespace {

constexpr uint32_t kMostPatient = 8192;

// Places of members.
struct Places {
  int16_t audit_context, mm, major, arguments, exe_file, inode, super_block, device;
};

Result<Places> places_of(const Btf& types) {
  const auto audit_context = types.member("task_struct", "audit_context");
  const auto mm = types.member("task_struct", "mm");
  const auto major = types.member("audit_context", "major");
  const auto arguments = types.member("audit_context", "argv");
  const auto exe_file = types.member("mm_struct", "exe_file");
  const auto inode = types.member("file", "f_inode");
  const auto super_block = types.member("inode", "i_sb");
  const auto device = types.member("super_block", "s_dev");
  if (!audit_context || !mm || !major || !arguments || !exe_file || !inode || !super_block || !device)
    return fail("evidence.audit", "the kernel does not say what its processes look like");
  return Places{*audit_context, *mm, *major, *arguments, *exe_file, *inode, *super_block, *device};
}

// Registers: 6 the task, 7 its audit_context, 8 the system call, 9 a device.
class Program {
 public:
  Program(const Places& places, const UniqueFd& patient, const Wakeup& wakeup)
      : places_(places), patient_(patient), wakeup_(wakeup) {}

  // void audit_log_exit(void)
  BpfCode code() && {
    c_.call(BPF_FUNC_get_current_task_btf);
    c_.move(6, 0);
    c_.load(BPF_DW, 7, 6, places_.audit_context);
    end_if(c_.jump(BPF_JEQ, 7, 0));
    c_.load(BPF_W, 8, 7, places_.major);
    for (const int call : {SYS_unlink, SYS_rmdir}) end_if(c_.jump(BPF_JEQ, 8, call));
    end_if_by_path(SYS_unlinkat);
    executions();
    for (const size_t jump : to_wakeup_) c_.land(jump);
    wakeup_.wake(c_, -16);
    for (const size_t jump : to_end_) c_.land(jump);
    c_.end();
    return std::move(c_);
  }

 private:
  void end_if(size_t jump) { to_end_.push_back(jump); }
  void wake_if(size_t jump) { to_wakeup_.push_back(jump); }

  // Of this call, if its directory is AT_FDCWD; others of it wake.
  void end_if_by_path(int call) {
    const size_t another = c_.jump(BPF_JNE, 8, call);
    c_.add(BPF_ALU | BPF_MOV | BPF_K, 2, 0, 0, AT_FDCWD);  // 32 bits of it
    c_.load(BPF_W, 1, 7, places_.arguments);
    wake_if(c_.jump_by(BPF_JNE, 1, 2));
    end_if(c_.jump(BPF_JA, 0, 0));
    c_.land(another);
  }

  void executions() {
    const size_t is_one = c_.jump(BPF_JEQ, 8, SYS_execve);
    wake_if(c_.jump(BPF_JNE, 8, SYS_execveat));
    c_.land(is_one);
    c_.call(BPF_FUNC_get_current_pid_tgid);
    c_.shift_right(0, 32);
    c_.store(BPF_W, 10, -4, 0);
    c_.map(1, patient_), c_.move(2, 10), c_.plus(2, -4);
    c_.call(BPF_FUNC_map_lookup_elem);
    wake_if(c_.jump(BPF_JEQ, 0, 0));
    c_.load(BPF_W, 9, 0, 0);
    c_.map(1, patient_), c_.move(2, 10), c_.plus(2, -4);
    c_.call(BPF_FUNC_map_delete_elem);
    c_.load(BPF_DW, 1, 6, places_.mm);
    c_.load(BPF_DW, 1, 1, places_.exe_file);
    c_.load(BPF_DW, 1, 1, places_.inode);
    c_.load(BPF_DW, 1, 1, places_.super_block);
    c_.load(BPF_W, 1, 1, places_.device);
    end_if(c_.jump_by(BPF_JEQ, 1, 9));
  }

  const Places& places_;
  const UniqueFd& patient_;
  const Wakeup& wakeup_;
  BpfCode c_;
  std::vector<size_t> to_wakeup_, to_end_;
};

}  // namespace

Result<AuditNotice> AuditNotice::make(const Btf& types, const Wakeup& wakeup) {
  const uint32_t function = types.function("audit_log_exit");
  if (function == 0) return fail("evidence.audit", "the kernel does not say where its audit ends");
  TRY_ASSIGN(const Places places, places_of(types));
  AuditNotice notice;
  TRY_ASSIGN(notice.patient_, make_bpf_map(BPF_MAP_TYPE_LRU_HASH, 4, 4, kMostPatient));
  TRY_ASSIGN(notice.link_,
             attach_bpf(Program(places, notice.patient_, wakeup).code(), function, BPF_TRACE_FEXIT));
  return notice;
}

void AuditNotice::can_wait(uint32_t pid, dev_t device) {
  if (!works()) return;
  // As the kernel writes it (MKDEV).
  const uint32_t number = major(device) << 20 | minor(device);
  update_bpf(patient_, &pid, &number);
}

void AuditNotice::cannot_wait(uint32_t pid) {
  if (works()) remove_bpf(patient_, &pid);
}

}  // namespace firestop::guest
