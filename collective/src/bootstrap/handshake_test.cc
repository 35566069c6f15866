#include "bootstrap/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "bootstrap/test_values.h"
#include "transport/socket.h"
#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

using testing::kTestKey;
using testing::soon;
using Verdict = ServerHandshake::Verdict;

const RankIdentity kWho{.rank = 3,
                        .size = 4,
                        .host = "n3",
                        .endpoint = "127.0.0.1:4000",
                        .local_endpoint = "unix:@muster-x",
                        .host_id = "id",
                        .arena_bytes = std::uint64_t{1} << 40,
                        .index = 7};

// The host's side of a connection, run to its end. Closes the connection of a stranger.
Verdict receive_caller(Descriptor socket, ServerHandshake& reception) {
  for (;;) {
    std::byte byte;  // one at a time: a handshake may arrive in pieces
    if (!receive_all(socket, std::span(&byte, 1), soon())) return Verdict::kMore;
    const Verdict verdict = reception.take(std::span(&byte, 1));
    if (!send_all(socket, reception.reply(), soon())) return Verdict::kMore;
    if (verdict != Verdict::kMore) return verdict;
  }
}

struct Outcome {
  Verdict verdict;
  Result<Handshake> handshake;
};

Outcome meet(const Bytes& callers_key, ServerHandshake& reception) {
  std::array<int, 2> fds = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
  Descriptor caller(fds[0]);
  Verdict verdict = Verdict::kMore;
  std::jthread host([&, socket = Descriptor(fds[1])]() mutable {
    verdict = receive_caller(std::move(socket), reception);
  });
  Result<Handshake> handshake = introduce(caller, callers_key, Purpose::kData, kWho, soon());
  caller.close();
  host.join();
  return {verdict, std::move(handshake)};
}

TEST(Handshake, AcceptsACallerThatHoldsTheKey) {
  ServerHandshake reception(kTestKey, Nonce{});

  const Outcome outcome = meet(kTestKey, reception);

  EXPECT_EQ(outcome.verdict, Verdict::kWelcome);
  ASSERT_TRUE(outcome.handshake) << outcome.handshake.error().to_string();
  EXPECT_EQ(reception.introduction().name(), "rank 3 on host n3");
  EXPECT_EQ(reception.introduction().size, 4);
  EXPECT_EQ(reception.introduction().endpoint, "127.0.0.1:4000");
  EXPECT_EQ(reception.introduction().local_endpoint, "unix:@muster-x");
  EXPECT_EQ(reception.introduction().host_id, "id");
  EXPECT_EQ(reception.introduction().arena_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(reception.introduction().index, 7);
  EXPECT_EQ(reception.handshake().purpose, Purpose::kData);
  EXPECT_EQ(reception.handshake().mac("x", {}), outcome.handshake->mac("x", {}));
}

TEST(Handshake, ReportsDifferentKeysToTheCaller) {
  ServerHandshake reception(kTestKey, Nonce{});

  const Outcome outcome = meet(Bytes(16, std::byte{2}), reception);

  EXPECT_NE(outcome.verdict, Verdict::kWelcome);
  ASSERT_FALSE(outcome.handshake);
  EXPECT_EQ(outcome.handshake.error().code, ErrorCode::kAuthentication);
}

// A caller without the key, which continues as if the host's proof were right.
TEST(Handshake, RejectsAProofMadeWithoutTheKey) {
  ServerHandshake reception(kTestKey, Nonce{});
  const Bytes opening = ByteWriter()
                            .raw(view_of("MUSTERCO"))
                            .number(kProtocolVersion)
                            .number(std::uint16_t{1})
                            .raw(Nonce{})
                            .take();
  EXPECT_EQ(reception.take(opening), Verdict::kMore);
  const Bytes challenge = reception.reply();
  // The best that such a caller can do is to return the host's own proof.
  const ByteView proof = ByteView(challenge).last(kDigestBytes);
  EXPECT_EQ(reception.take(ByteWriter().number(std::uint32_t{4}).raw(proof).take()),
            Verdict::kMore);
  EXPECT_EQ(reception.take(Bytes(4)), Verdict::kStranger);
  EXPECT_EQ(reception.reason(), "it holds another key");
}

TEST(Handshake, DetectsAStrangerByItsFirstByte) {
  ServerHandshake reception(kTestKey, Nonce{});
  EXPECT_EQ(reception.take(view_of("G")), Verdict::kStranger);
  EXPECT_EQ(reception.reason(), "it does not speak this protocol");
  EXPECT_TRUE(reception.reply().empty());
}

TEST(Handshake, RejectsAnExcessiveLength) {
  ServerHandshake reception(kTestKey, Nonce{});
  const Bytes opening = ByteWriter()
                            .raw(view_of("MUSTERCO"))
                            .number(kProtocolVersion)
                            .number(std::uint16_t{1})
                            .raw(Nonce{})
                            .take();
  EXPECT_EQ(reception.take(opening), Verdict::kMore);
  EXPECT_EQ(reception.take(ByteWriter().number(0xffffffffU).raw(Digest{}).take()),
            Verdict::kStranger);
  EXPECT_EQ(reception.reason(), "its introduction claims to be 4294967295 bytes long");
}

TEST(Handshake, AnswersAnotherVersionSoThatTheCallerCanReportIt) {
  ServerHandshake reception(kTestKey, Nonce{});
  const Bytes opening = ByteWriter()
                            .raw(view_of("MUSTERCO"))
                            .number(std::uint16_t{9})
                            .number(std::uint16_t{1})
                            .raw(Nonce{})
                            .take();
  EXPECT_EQ(reception.take(opening), Verdict::kStranger);
  EXPECT_EQ(reception.reason(),
            "it speaks version 9 of the protocol, not " + std::to_string(kProtocolVersion));
  EXPECT_FALSE(reception.reply().empty());
}

}  // namespace
}  // namespace muster::collective
