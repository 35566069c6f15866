#include "world/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "bootstrap/crypto.h"
#include "transport/socket.h"

namespace muster::collective {

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<Descriptor> SharedMemory::create(std::uint64_t bytes) {
  Descriptor file(::memfd_create("muster-collective", MFD_CLOEXEC));
  if (!file) return system_error("cannot create shared memory", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("cannot size shared memory", errno);
  }
  return file;
}

Result<SharedMemory> SharedMemory::map(Descriptor file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot size shared memory", errno);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (base == MAP_FAILED) return system_error("cannot map shared memory", errno);
  // Huge pages mean fewer TLB misses on large tensors. On systems without them the call fails
  // without harm.
  ::madvise(base, bytes, MADV_HUGEPAGE);
  SharedMemory memory;
  memory.file_ = std::move(file);
  memory.base_ = static_cast<std::byte*>(base);
  memory.bytes_ = bytes;
  return memory;
}

// If a signal interrupts fallocate(), older kernels free all that the call has allocated. A program
// with a timer that sends signals would start again and again, so the range is allocated in steps.
// If a step fails, the memory of the steps before it remains allocated: in some ranges, other ranks
// already use a part.
Status SharedMemory::reserve(std::uint64_t offset, std::uint64_t bytes) const {
  constexpr std::uint64_t kMostAtOnce = std::uint64_t{4} << 20;
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const std::uint64_t step = std::min(end - offset, kMostAtOnce);
    if (::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(step)) == 0) {
      offset += step;
    } else if (errno != EINTR) {
      return system_error("cannot reserve " + std::to_string(bytes) + " bytes of shared memory",
                          errno);
    }
  }
  return {};
}

void SharedMemory::release(std::uint64_t offset, std::uint64_t bytes) const {
  static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(offset), static_cast<off_t>(bytes)));
}

std::string find_host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat network = {};
  Digest digest = {};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) {
    // An unknown host shares memory with no rank, so its id is random.
    static_cast<void>(fill_random(digest));
    return to_hex(digest);
  }
  const std::string text = boot + " " + std::to_string(network.st_dev) + " " +
                           std::to_string(network.st_ino) + " " + std::to_string(::geteuid());
  return to_hex(sha256(view_of(text)));
}

std::uint64_t default_arena_bytes(int size) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 30;
  // A process has 128 TiB of address space, for all of its worlds.
  constexpr std::uint64_t kMostTogether = std::uint64_t{16} << 40;
  // The arenas of other hosts need no address space here. The number of ranks on this host is
  // unknown before the ranks meet, but a host rarely has more than this.
  constexpr int kMostOnHost = 1024;
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  const auto page = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  const auto sharers = static_cast<unsigned>(std::min(size, kMostOnHost));
  std::uint64_t bytes = std::min({kMost, pages * page / 2, kMostTogether / sharers});
  // Each rank maps the arenas of all ranks, which count against its limit of address space (`ulimit
  // -v`), of which other allocations need a part; and all arenas are one file (`ulimit -f`).
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit = {};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur / 4 / sharers);
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
