#include "world/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "shm/layout.h"

namespace muster::collective {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;

// A timer whose signals interrupt the calls of fallocate() in this thread, each time that they have
// allocated `period` bytes. The interrupted call allocates nothing.
struct Interruptions {
  off_t period = 0;  // 0: no signals
  off_t until_next = 0;
  int left = 0;  // then fallocate() fails
};
thread_local Interruptions interruptions;

int interrupted_fallocate(int file, int mode, off_t offset, off_t bytes) {
  Interruptions& timer = interruptions;
  if (mode == 0 && timer.period > 0 && bytes > timer.until_next) {
    timer.until_next = timer.period;
    errno = timer.left-- > 0 ? EINTR : ENOSPC;
    return -1;
  }
  if (mode == 0) timer.until_next -= std::min(bytes, timer.until_next);
  return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, bytes));
}

}  // namespace
}  // namespace muster::collective

// Replaces the function of the C library in this program: not all kernels interrupt the call.
extern "C" int fallocate(int file, int mode, off_t offset, off_t bytes) {
  return muster::collective::interrupted_fallocate(file, mode, offset, bytes);
}

namespace muster::collective {
namespace {

TEST(SharedMemory, IsZeroAtFirstAndEqualInAllMappings) {
  Result<Descriptor> file = SharedMemory::create(kBytes);
  ASSERT_TRUE(file);
  Descriptor copy(::dup(file->get()));
  const Result<SharedMemory> one = SharedMemory::map(*std::move(file));
  const Result<SharedMemory> other = SharedMemory::map(std::move(copy));
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->base(), other->base());
  EXPECT_EQ(other->base()[kBytes - 1], std::byte{0});
  one->base()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(other->base()[kBytes - 1], std::byte{7});
}

TEST(SharedMemory, LargerThanTheSystemsMemoryCostsNothingUntilItIsWritten) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 42;
  Result<Descriptor> file = SharedMemory::create(kHuge);
  ASSERT_TRUE(file) << file.error().to_string();
  const Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (!memory) GTEST_SKIP() << "the sanitizer leaves too little address space";
#endif
  ASSERT_TRUE(memory) << memory.error().to_string();
  EXPECT_EQ(memory->bytes(), kHuge);
  EXPECT_TRUE(memory->reserve(kHuge / 2, 4096));
}

TEST(SharedMemory, IsReservedAlthoughSignalsInterruptTheCall) {
  constexpr std::uint64_t kLarge = 64 * kBytes;
  Result<Descriptor> file = SharedMemory::create(kLarge);
  ASSERT_TRUE(file) << file.error().to_string();
  const Descriptor copy(::dup(file->get()));
  const Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
  ASSERT_TRUE(memory) << memory.error().to_string();

  interruptions = {.period = 10 * kBytes, .until_next = 3 * kBytes, .left = 100};
  const Status reserved = memory->reserve(kBytes, kLarge - kBytes);
  interruptions = {};

  ASSERT_TRUE(reserved) << reserved.error().to_string();
  struct stat status = {};
  ASSERT_EQ(::fstat(copy.get(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, static_cast<std::int64_t>(kLarge - kBytes));
}

TEST(SharedMemory, OfAnArenaIsGivenBackIfThereIsNotEnough) {
  constexpr std::uint64_t kLarge = 64 * kBytes;
  Result<Descriptor> file = SharedMemory::create(kLarge);
  ASSERT_TRUE(file) << file.error().to_string();
  const Descriptor copy(::dup(file->get()));
  const Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
  ASSERT_TRUE(memory) << memory.error().to_string();
  shm::Arena arena(*memory, 0, kLarge);

  interruptions = {.period = 10 * kBytes, .until_next = 10 * kBytes, .left = 0};
  void* const place = arena.allocate(32 * kBytes);
  interruptions = {};

  EXPECT_EQ(place, nullptr);
  struct stat status = {};
  ASSERT_EQ(::fstat(copy.get(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST(SharedMemory, OfManyRanksLeavesAddressSpaceForOtherWorlds) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
  for (const int ranks : {1, 64, 256, 1'024}) {
    EXPECT_LE(default_arena_bytes(ranks) * static_cast<std::uint64_t>(ranks), kMost) << ranks;
  }
  EXPECT_EQ(default_arena_bytes(8), default_arena_bytes(1)) << "the limit is for more ranks";
  EXPECT_EQ(default_arena_bytes(65'536), default_arena_bytes(1'024)) << "they are on several hosts";
}

TEST(SharedMemory, MovesWithItsOwner) {
  Result<SharedMemory> made = SharedMemory::map(*SharedMemory::create(kBytes));
  SharedMemory memory = *std::move(made);
  EXPECT_TRUE(memory);
  EXPECT_FALSE(*made);  // NOLINT(bugprone-use-after-move): the test is about the moved-from value
  SharedMemory other;
  other = std::move(memory);
  EXPECT_EQ(other.bytes(), kBytes);
}

}  // namespace
}  // namespace muster::collective
