// Messages between two ranks, and the collectives with a root.
#include "session/mail.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "session/session_fixture.h"

namespace muster::collective::session {
namespace {

class MailTest : public SessionTest {};
INSTANTIATE_SESSION_TEST(MailTest);

std::vector<int> values_of(std::size_t count, int first) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

Result<Ticket> send(Session& session, const std::vector<int>& values, int to,
                    std::uint64_t tag = 0) {
  return session.send(values.data(), values.size() * sizeof(int), to, tag);
}

Result<Ticket> receive(Session& session, std::vector<int>& values, int from, std::uint64_t tag = 0,
                       int* sender = nullptr) {
  return session.receive(values.data(), values.size() * sizeof(int), from, tag, sender);
}

TEST_P(MailTest, MessagesOfEveryLengthArrive) {
  run(2, [](Session& session) {
    const int other = 1 - session.rank();
    for (const std::size_t count :
         {0UL, 1UL, 1000UL, Mail::kLongestShort / sizeof(int),
          Mail::kLongestShort / sizeof(int) + 1, Mail::kLongestShortInRing / sizeof(int),
          Mail::kLongestShortInRing / sizeof(int) + 1, 1UL << 20U, 5000000UL}) {
      const std::vector<int> sent = values_of(count, session.rank());
      std::vector<int> received(count);
      const Ticket sending = ticket_of(send(session, sent, other));
      const Ticket receiving = ticket_of(receive(session, received, other));
      EXPECT_OK(session.wait(sending));
      EXPECT_OK(session.wait(receiving));
      EXPECT_EQ(received, values_of(count, other));
    }
  });
}

TEST_P(MailTest, TagsAreMatchedInAnyOrderAndEqualTagsInOrder) {
  run(2, [](Session& session) {
    if (session.rank() == 0) {
      std::vector<Ticket> tickets;
      std::vector<std::vector<int>> sent;
      for (int i = 0; i < 6; ++i) sent.push_back({i});
      for (int i = 0; i < 6; ++i) {
        tickets.push_back(ticket_of(send(session, sent[static_cast<std::size_t>(i)], 1,
                                         static_cast<std::uint64_t>(i % 3))));
      }
      for (const Ticket ticket : tickets) EXPECT_OK(session.wait(ticket));
      return;
    }
    for (const int i : {2, 5, 1, 4, 0, 3}) {
      std::vector<int> received(1);
      EXPECT_OK(session.wait(
          ticket_of(receive(session, received, 0, static_cast<std::uint64_t>(i % 3)))));
      EXPECT_EQ(received[0], i);
    }
  });
}

TEST_P(MailTest, AReceiveFromAnyRankNamesTheSender) {
  run(3, [](Session& session) {
    constexpr std::size_t kLong = 100000;
    if (session.rank() > 0) {
      const std::vector<int> sent(kLong, session.rank());
      EXPECT_OK(session.wait(ticket_of(send(session, sent, 0, 7))));
      return;
    }
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      std::vector<int> received(kLong);
      int sender = -1;
      EXPECT_OK(session.wait(ticket_of(receive(session, received, kAnyRank, 7, &sender))));
      EXPECT_EQ(received, std::vector<int>(kLong, sender));
      sum += sender;
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST_P(MailTest, ManyUnreadMessagesWaitAtTheSender) {
  run(2, [](Session& session) {
    constexpr int kMessages = 5000;
    if (session.rank() == 0) {
      const std::vector<int> sent(1000, 1);
      std::vector<Ticket> tickets;
      for (int i = 0; i < kMessages; ++i) tickets.push_back(ticket_of(send(session, sent, 1)));
      // More than Mail::kMostUnread.
      EXPECT_FALSE(session.done(tickets.back()));
      EXPECT_OK(session.wait(ticket_of(session.barrier("sent"))));
      for (const Ticket ticket : tickets) EXPECT_OK(session.wait(ticket));
      return;
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("sent"))));
    std::vector<int> received(1000);
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_OK(session.wait(ticket_of(receive(session, received, 0))));
    }
  });
}

TEST_P(MailTest, DifferentLengthsAreAMismatch) {
  run(2, [](Session& session) {
    for (const std::size_t count : {10UL, 1UL << 20U}) {
      std::vector<int> values(count + static_cast<std::size_t>(session.rank()));
      const Status outcome = session.wait(
          ticket_of(session.rank() == 0 ? send(session, values, 1) : receive(session, values, 0)));
      if (session.rank() == 0 && count == 10) continue;  // a short message is sent at once
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kMismatch);
      EXPECT_NE(outcome.error().message.find("rank 0"), std::string::npos);
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("still usable"))));
  });
}

TEST_P(MailTest, AMessageOfARankThatHasLeftFails) {
  run(3, [](Session& session) {
    if (session.rank() == 2) {
      const std::vector<int> last = {5};
      EXPECT_OK(session.wait(ticket_of(send(session, last, 0, 1))));
      session.leave();
      return;
    }
    std::vector<int> received(1);
    if (session.rank() == 0) {
      const Status outcome = session.wait(ticket_of(receive(session, received, 2, 9)));
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kPeerLost);
      EXPECT_EQ(outcome.error().rank, 2);
      EXPECT_OK(session.wait(ticket_of(receive(session, received, 2, 1))));
      EXPECT_EQ(received[0], 5);
    }
    // The other ranks still exchange messages.
    const std::vector<int> sent(100000, session.rank());
    std::vector<int> swapped(100000);
    const Ticket sending = ticket_of(send(session, sent, 1 - session.rank()));
    EXPECT_OK(session.wait(ticket_of(receive(session, swapped, 1 - session.rank()))));
    EXPECT_OK(session.wait(sending));
    EXPECT_EQ(swapped[0], 1 - session.rank());
  });
}

TEST_P(MailTest, PendingMessagesEndWithTheSession) {
  run(2, [](Session& session) {
    std::vector<int> received(1);
    const Ticket never = ticket_of(receive(session, received, 1 - session.rank(), 3));
    session.leave();
    const Status outcome = session.wait(never);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kPeerLost);
  });
}

TEST_P(MailTest, ARankCannotSendToItself) {
  run(2, [](Session& session) {
    const std::vector<int> sent(1);
    const Result<Ticket> refused = send(session, sent, session.rank());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kBadArgument);
    EXPECT_FALSE(send(session, sent, 2));
  });
}

TEST_P(MailTest, ReduceGatherAndScatterHaveARoot) {
  run(3, [](Session& session) {
    constexpr int kRoot = 1;
    const bool is_root = session.rank() == kRoot;
    const std::vector<int> own = {session.rank() + 1, 10};
    std::vector<int> sum(2);
    EXPECT_OK(
        session.wait(ticket_of(session.reduce("reduce", own.data(), is_root ? sum.data() : nullptr,
                                              2, DataType::kInt32, ReduceOp::kSum, kRoot))));
    EXPECT_EQ(sum, is_root ? (std::vector<int>{6, 30}) : (std::vector<int>{0, 0}));

    std::vector<int> gathered(6);
    const auto into = [](std::vector<int>& values) {
      return [&values](std::span<const std::uint64_t>) -> void* { return values.data(); };
    };
    EXPECT_OK(session.wait(
        ticket_of(session.gather("gather", own.data(), 2 * sizeof(int), kRoot, into(gathered)))));
    if (is_root) {
      EXPECT_EQ(gathered, (std::vector<int>{1, 10, 2, 10, 3, 10}));
    }

    std::vector<int> part(1);
    const std::vector<int> parts = {7, 8, 9};
    const std::vector<std::uint64_t> sent(3, sizeof(int));
    EXPECT_OK(session.wait(
        ticket_of(is_root ? session.scatter("scatter", parts.data(), sent, kRoot, into(part))
                          : session.scatter("scatter", nullptr, {}, kRoot, into(part)))));
    EXPECT_EQ(part[0], 7 + session.rank());

    const Status differ = session.wait(ticket_of(
        session.gather("roots", own.data(), 8, session.rank() == 0 ? 0 : 1, into(gathered))));
    ASSERT_FALSE(differ);
    EXPECT_EQ(differ.error().code, ErrorCode::kMismatch);
    EXPECT_NE(differ.error().message.find("gather to rank 1"), std::string::npos)
        << differ.error().message;
  });
}

TEST_P(MailTest, BitwiseReductionsTakeIntegersAndBools) {
  run(3, [](Session& session) {
    const auto rank = static_cast<std::uint8_t>(session.rank());
    const std::vector<std::uint8_t> in(100, static_cast<std::uint8_t>(0xf0U | (1U << rank)));
    const auto reduced = [&](ReduceOp op, DataType type) {
      std::vector<std::uint8_t> out(in.size());
      EXPECT_OK(session.wait(
          ticket_of(session.all_reduce("bits", in.data(), out.data(), out.size(), type, op))));
      return out.back();
    };
    EXPECT_EQ(reduced(ReduceOp::kBitAnd, DataType::kUInt8), 0xf0);
    EXPECT_EQ(reduced(ReduceOp::kBitOr, DataType::kUInt8), 0xf7);
    EXPECT_EQ(reduced(ReduceOp::kBitXor, DataType::kInt8), 0xf7);
    EXPECT_EQ(reduced(ReduceOp::kBitXor, DataType::kBool), 1);
    std::vector<float> floats(1);
    const Result<Ticket> refused = session.all_reduce("floats", floats.data(), floats.data(), 1,
                                                      DataType::kFloat32, ReduceOp::kBitAnd);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "'floats': bitwise and requires integers or bools, not float32");
  });
}

}  // namespace
}  // namespace muster::collective::session
