// A buffer of more bytes than the machine has memory: one small file, mapped many times.
//
//   file | file | ... | mark | file | ... | mark | rest
//
// All copies of the file have the same bytes, so data that is written or read must have the file's
// period. The marks are pages of their own in the middle and at the end, which an offset that is
// truncated to 31 or 32 bits cannot reach. They are zeros at first.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace muster::collective::testing {

class VastBuffer {
 public:
  static constexpr std::uint64_t kPeriod = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMark = 4096;
  static constexpr std::uint64_t kMiddle = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kBytes = kEnd + 5;

  VastBuffer() {
    const int file = ::memfd_create("vast", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, kPeriod) != 0) throw_away();
    data_ = map(nullptr, kReserved, 0, -1);
    for (std::uint64_t at = 0; at < kEnd; at += kPeriod) map(data_ + at, kPeriod, MAP_FIXED, file);
    for (const std::uint64_t mark : kMarks) map(data_ + mark, kMark, MAP_FIXED, -1);
    ::close(file);
  }
  ~VastBuffer() { ::munmap(data_, kReserved); }
  VastBuffer(const VastBuffer&) = delete;
  VastBuffer& operator=(const VastBuffer&) = delete;

  std::byte* data() const { return data_; }

  /// One period of the content. The marks replace parts of some copies, but other copies contain
  /// those parts.
  std::span<std::byte> period() const { return {data_ + kPeriod, kPeriod}; }

  /// The marks. The last one is cut off at the end of the buffer.
  std::array<std::span<std::byte>, 4> marks() const {
    return {{{data_ + kMarks[0], kMark},
             {data_ + kMarks[1], kMark},
             {data_ + kMarks[2], kMark},
             {data_ + kMarks[3], kBytes - kEnd}}};
  }

 private:
  static constexpr std::uint64_t kReserved = kEnd + kMark;
  static constexpr std::array<std::uint64_t, 4> kMarks = {kMiddle - kMark, kMiddle, kEnd - kMark,
                                                          kEnd};

  static std::byte* map(std::byte* at, std::uint64_t bytes, int flags, int file) {
    flags |= file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE,
                                flags | (file < 0 ? MAP_NORESERVE : MAP_POPULATE), file, 0);
    if (mapped == MAP_FAILED) throw_away();
    return static_cast<std::byte*>(mapped);
  }
  [[noreturn]] static void throw_away() { throw std::runtime_error("cannot map a vast buffer"); }

  std::byte* data_ = nullptr;
};

}  // namespace muster::collective::testing
