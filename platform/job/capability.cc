#include "job/capability.h"

#include <algorithm>

namespace muster::job {

const std::vector<std::string>& capabilities() {
  static const std::vector<std::string> known{
      "AUDIT_CONTROL",   "AUDIT_READ",   "AUDIT_WRITE",
      "BLOCK_SUSPEND",   "BPF",          "CHECKPOINT_RESTORE",
      "CHOWN",           "DAC_OVERRIDE", "DAC_READ_SEARCH",
      "FOWNER",          "FSETID",       "IPC_LOCK",
      "IPC_OWNER",       "KILL",         "LEASE",
      "LINUX_IMMUTABLE", "MAC_ADMIN",    "MAC_OVERRIDE",
      "MKNOD",           "NET_ADMIN",    "NET_BIND_SERVICE",
      "NET_BROADCAST",   "NET_RAW",      "PERFMON",
      "SETFCAP",         "SETGID",       "SETPCAP",
      "SETUID",          "SYSLOG",       "SYS_ADMIN",
      "SYS_BOOT",        "SYS_CHROOT",   "SYS_MODULE",
      "SYS_NICE",        "SYS_PACCT",    "SYS_PTRACE",
      "SYS_RAWIO",       "SYS_RESOURCE", "SYS_TIME",
      "SYS_TTY_CONFIG",  "WAKE_ALARM"};
  return known;
}

std::string capability_of(std::string_view written) {
  constexpr std::string_view kPrefix = "CAP_";
  std::string name(written);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::vector<std::string> capabilities_of(const std::vector<std::string>& written) {
  std::vector<std::string> names;
  names.reserve(written.size());
  for (const std::string& name : written) names.push_back(capability_of(name));
  return names;
}

}  // namespace muster::job
