#include "transport/control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "transport/socket.h"

namespace muster::collective {
namespace {

using Nothing = ControlChannel::Nothing;
using Ended = ControlChannel::Ended;

struct Pair {
  ControlChannel ours;
  ControlChannel theirs;
};

Pair connected() {
  std::array<int, 2> fds = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
  return {ControlChannel(Descriptor(fds[0])), ControlChannel(Descriptor(fds[1]))};
}

TEST(Control, CarriesMessagesInOrder) {
  Pair pair = connected();
  pair.ours.send({ControlKind::kProbe});
  pair.ours.send({ControlKind::kGoodbye});

  EXPECT_EQ(std::get<ControlMessage>(pair.theirs.next()).kind, ControlKind::kProbe);
  EXPECT_EQ(std::get<ControlMessage>(pair.theirs.next()).kind, ControlKind::kGoodbye);
  EXPECT_TRUE(std::holds_alternative<Nothing>(pair.theirs.next()));
}

TEST(Control, CarriesTheWholeCauseOfAnAbort) {
  Pair pair = connected();
  const Error cause{ErrorCode::kPeerLost, "rank 3 is gone", "look there", 3, "n3"};
  pair.ours.send({ControlKind::kAbort, cause});

  const auto message = std::get<ControlMessage>(pair.theirs.next());

  EXPECT_EQ(message.kind, ControlKind::kAbort);
  EXPECT_EQ(message.cause.code, cause.code);
  EXPECT_EQ(message.cause.to_string(), cause.to_string());
  EXPECT_EQ(message.cause.rank, 3);
  EXPECT_EQ(message.cause.host, "n3");
}

TEST(Control, CutsOffAnEndlessCauseInsteadOfLosingIt) {
  Pair pair = connected();
  pair.ours.send({ControlKind::kAbort,
                  {ErrorCode::kSystem, std::string(9000, 'm'), std::string(9000, 'a'), 1,
                   std::string(9000, 'h')}});

  const auto message = std::get<ControlMessage>(pair.theirs.next());

  EXPECT_EQ(message.cause.rank, 1);
  EXPECT_EQ(message.cause.message, std::string(1300, 'm'));
}

TEST(Control, LetsTheLastWordsBeReadBeforeTheEnd) {
  Pair pair = connected();
  pair.ours.send({ControlKind::kGoodbye});
  pair.ours = ControlChannel(Descriptor());

  EXPECT_EQ(std::get<ControlMessage>(pair.theirs.next()).kind, ControlKind::kGoodbye);
  EXPECT_EQ(std::get<Ended>(pair.theirs.next()).reason, 0);
}

TEST(Control, WaitsForTheRestOfAFrame) {
  Pair whole = connected();
  whole.ours.send({ControlKind::kAbort, {ErrorCode::kSystem, "why"}});
  std::array<std::byte, 256> frame;
  const std::size_t length = receive_some(whole.theirs.socket(), frame).bytes;

  Pair pair = connected();
  for (std::size_t i = 0; i < length; ++i) {
    EXPECT_TRUE(std::holds_alternative<Nothing>(pair.theirs.next())) << i;
    ASSERT_EQ(send_some(pair.ours.socket(), std::span(frame).subspan(i, 1)).bytes, 1u);
  }
  EXPECT_EQ(std::get<ControlMessage>(pair.theirs.next()).cause.message, "why");
}

TEST(Control, EndsOnWhatIsNoFrame) {
  Pair pair = connected();
  ASSERT_EQ(send_some(pair.ours.socket(), view_of("GET / HTTP/1.1\r\n")).bytes, 16u);
  EXPECT_EQ(std::get<Ended>(pair.theirs.next()).reason, EPROTO);
}

TEST(Control, SendingToWhoIsGoneIsNoSignalAndNoCrash) {
  Pair pair = connected();
  pair.theirs = ControlChannel(Descriptor());
  pair.ours.send({ControlKind::kProbe});
  EXPECT_TRUE(std::holds_alternative<Ended>(pair.ours.next()));
}

}  // namespace
}  // namespace muster::collective
