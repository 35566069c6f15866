#include "bootstrap/host_id.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "bootstrap/crypto.h"

namespace muster::collective {

std::string find_host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat network = {};
  Digest digest = {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) {
    // Unknown is nobody's neighbour.
    static_cast<void>(fill_random(digest));
    return to_hex(digest);
  }
  const std::string text = boot + " " + std::to_string(network.st_dev) + " " +
                           std::to_string(network.st_ino) + " " + std::to_string(::geteuid());
  return to_hex(sha256(view_of(text)));
}

std::uint64_t default_arena_bytes(int size) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 30;
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  const auto page = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  std::uint64_t bytes = std::min(kMost, pages * page / 2);
  // All arenas are mapped by each rank, and so stand against its limit (`ulimit -v`), which is
  // needed for other things too; and they are one file (`ulimit -f`).
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit = {};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur / 4 / static_cast<unsigned>(size));
    }
  }
  return bytes;
}

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace muster::collective
