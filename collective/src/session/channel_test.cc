#include "session/channel.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <array>
#include <thread>
#include <vector>

namespace muster::collective::session {
namespace {

constexpr std::uint64_t kCapacity = 256;

struct Memory {
  Position writer;
  std::array<Position, 2> readers;
  std::array<std::byte, kCapacity> data = {};

  Ring ring(int reader_count) {
    return {&writer, readers.data(), reader_count, data.data(), kCapacity};
  }
};

Bytes message_of(std::uint32_t number, std::size_t length) {
  Bytes message(length, static_cast<std::byte>(number));
  return message;
}

TEST(Ring, EveryReaderReadsEveryMessageInOrder) {
  constexpr std::uint32_t kMessages = 20'000;
  Memory memory;
  // Threads that wait for room or for messages yield: this test is about order, not about sleep.
  testing::on_threads(3, [&](int thread) {
    Ring ring = memory.ring(2);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const Bytes expected = message_of(i, i * 7 % 90);
      if (thread == 2) {
        while (!ring.write(expected)) std::this_thread::yield();
        continue;
      }
      Bytes message;
      bool wake = false;
      while (ring.read(thread, message, wake) == Ring::Read::kNothing) std::this_thread::yield();
      ASSERT_EQ(message, expected);
    }
  });
}

TEST(Ring, ReportsToTheReaderThatTheWriterWaitsForRoom) {
  Memory memory;
  Ring ring = memory.ring(1);
  Bytes message;
  bool wake = false;
  int written = 0;
  while (ring.write(message_of(1, 24))) ++written;
  EXPECT_EQ(written, 8);
  EXPECT_EQ(ring.read(0, message, wake), Ring::Read::kMessage);
  EXPECT_TRUE(wake);
  wake = false;
  EXPECT_EQ(ring.read(0, message, wake), Ring::Read::kMessage);
  EXPECT_FALSE(wake) << "it was reported already";
  EXPECT_TRUE(ring.write(message_of(1, 24)));
}

TEST(Ring, DetectsDamage) {
  Memory memory;
  Ring ring = memory.ring(1);
  ASSERT_TRUE(ring.write(message_of(1, 8)));
  memory.data[3] = std::byte{0xff};
  Bytes message;
  bool wake = false;
  EXPECT_EQ(ring.read(0, message, wake), Ring::Read::kDamaged);
}

TEST(Doorbell, WakesASleepingThreadAndLosesNoRing) {
  constexpr int kRounds = 20'000;
  Doorbell bell;
  std::atomic<int> work = 0;
  testing::on_threads(2, [&](int thread) {
    if (thread == 0) {
      for (int i = 0; i < kRounds; ++i) {
        ++work;
        bell.notify(true);
      }
      return;
    }
    // Hangs if a ring is lost.
    int done = 0;
    while (done < kRounds) {
      const std::uint32_t seen = bell.count();
      bell.attend();
      done += work.exchange(0);
      bell.rest(Attention::kAsleep);
      if (work == 0 && done < kRounds) bell.wait(seen, std::nullopt);
    }
  });
}

TEST(Doorbell, WaitsNoLongerThanItsDeadline) {
  Doorbell bell;
  bell.wait(bell.count(), Clock::now() + std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace muster::collective::session
