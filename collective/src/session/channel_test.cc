#include "session/channel.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "control/monitor.h"

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

// The thread on duty may be the only one that sees that rank 0 has freed room: the session's thread
// was woken by rank 0, but found the duty taken.
TEST(SharedChannel, HasWorkOnceHandOversThatFoundNoRoomCanBeSent) {
  constexpr std::size_t kLength = 1024;
  const std::uint64_t bytes = least_shared_bytes(2);
  std::vector<Position> memory(bytes / sizeof(Position) + 1);  // zeros, aligned to cache lines
  auto* const shared = reinterpret_cast<std::byte*>(memory.data());
  const Monitor monitor({.rank = 0, .host = "a", .timeout = testing::kPatience}, {});
  std::vector<Bytes> taken;
  Deadline before_reading = {};
  const auto reader = shared_channel(0, 2, shared, bytes, monitor,
                                     [&](int from, ByteView message, Deadline handed_over) {
                                       EXPECT_EQ(from, 1);
                                       EXPECT_LE(handed_over, before_reading);
                                       taken.emplace_back(message.begin(), message.end());
                                       return false;
                                     });
  const auto writer =
      shared_channel(1, 2, shared, bytes, monitor, [](int, ByteView, Deadline) { return false; });
  std::vector<Bytes> sent;
  for (std::uint32_t i = 0; i < 2 * bytes / kLength; ++i) {
    sent.push_back(message_of(i, kLength));
    writer->hand_over(sent.back(), std::nullopt);
  }
  before_reading = Clock::now();
  EXPECT_FALSE(writer->has_next()) << "the ring is full";

  Bytes record;
  while (taken.size() < sent.size()) {
    const std::size_t before = taken.size();
    reader->collect();
    ASSERT_GT(taken.size(), before);
    EXPECT_EQ(writer->has_next(), taken.size() < sent.size());
    EXPECT_EQ(writer->next(record), Channel::Next::kNothing);
    EXPECT_FALSE(writer->has_next()) << "the ring is full again, or everything was sent";
  }
  EXPECT_EQ(taken, sent);
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
