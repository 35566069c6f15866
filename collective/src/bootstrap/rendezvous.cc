#include "bootstrap/rendezvous.h"

#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bootstrap/crypto.h"
#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

// The answer of rank 0 begins with its kind, a u8. A roster continues with the terms, u32 members,
// and for each member its texts and u64 arena; a refusal continues with the error.
enum class Answer : std::uint8_t { kRoster = 1, kRefusal = 2 };

constexpr std::string_view kLabel = "host";
// Four texts of up to 255 bytes a rank: room for sixty thousand ranks.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;

Member member_of(const RankIdentity& who) {
  return {who.host, who.endpoint, who.local_endpoint, who.host_id, who.arena_bytes};
}

Bytes encode_roster(const Roster& roster) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(Answer::kRoster))
      .text(roster.terms.transport)
      .text(roster.terms.algorithm)
      .number(static_cast<std::int32_t>(roster.terms.streams))
      .number(static_cast<std::uint32_t>(roster.members.size()));
  for (const Member& member : roster.members) {
    writer.text(member.host)
        .text(member.endpoint)
        .text(member.local_endpoint)
        .text(member.host_id)
        .number(member.arena_bytes);
  }
  return writer.take();
}

Bytes encode_refusal(const Error& refusal) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(Answer::kRefusal));
  write_error(writer, refusal);
  return writer.take();
}

Result<Roster> decode_roster(ByteView answer, int size) {
  ByteReader reader(answer);
  const auto kind = Answer{reader.number<std::uint8_t>()};
  if (kind == Answer::kRefusal) return read_error(reader);
  Roster roster;
  roster.terms.transport = reader.text();
  roster.terms.algorithm = reader.text();
  roster.terms.streams = reader.number<std::int32_t>();
  const auto count = reader.number<std::uint32_t>();
  for (int rank = 0; rank < size && reader.ok(); ++rank) {
    Member& member = roster.members.emplace_back();
    member.host = reader.text();
    member.endpoint = reader.text();
    member.local_endpoint = reader.text();
    member.host_id = reader.text();
    member.arena_bytes = reader.number<std::uint64_t>();
  }
  const bool whole = reader.ok() && reader.at_end() && count == roster.members.size();
  if (kind != Answer::kRoster || !whole) {
    return Error{ErrorCode::kMismatch, "rank 0 sent an invalid roster"};
  }
  return roster;
}

std::optional<Error> objection_to(const RankIdentity& peer, const RankIdentity& self,
                                  const Roster& roster) {
  if (peer.size != self.size) {
    return Error{ErrorCode::kMismatch,
                 peer.name() + " belongs to a world of " + std::to_string(peer.size) +
                     " ranks, but " + self.name() + " to a world of " + std::to_string(self.size),
                 "start all ranks of a job with the same world size"};
  }
  if (peer.rank <= 0 || peer.rank >= self.size) {
    return Error{ErrorCode::kMismatch,
                 peer.name() + " is outside of the world of " + std::to_string(self.size) +
                     " ranks whose rank 0 is on host " + self.host,
                 "number the ranks of a job from 0 to size - 1"};
  }
  const Member& earlier = roster.members[static_cast<std::size_t>(peer.rank)];
  if (earlier.endpoint.empty()) return std::nullopt;
  return Error{ErrorCode::kMismatch,
               "rank " + std::to_string(peer.rank) + " joined twice: from host " + earlier.host +
                   " (" + earlier.endpoint + ") and from host " + peer.host + " (" + peer.endpoint +
                   ")",
               "give every process of a job a rank of its own"};
}

// The ids of hosts are long, and every rank of a large world gets those of all ranks.
void shorten_host_ids(Roster& roster) {
  std::map<std::string, std::string> hosts;
  for (Member& member : roster.members) {
    member.host_id = hosts.emplace(member.host_id, std::to_string(hosts.size())).first->second;
  }
}

// "rank 2", "ranks 1, 3"
std::string missing_from(const Roster& roster) {
  std::string names;
  int count = 0;
  for (std::size_t rank = 0; rank < roster.members.size(); ++rank) {
    if (!roster.members[rank].endpoint.empty()) continue;
    names += (count++ == 0 ? " " : ", ") + std::to_string(rank);
  }
  return (count == 1 ? "rank" : "ranks") + names;
}

Error did_not_come(const Roster& roster, const RankIdentity& self, const Acceptor& door,
                   std::chrono::milliseconds timeout, const std::string& note) {
  const std::string dropped = door.dropped();
  return {ErrorCode::kTimeout,
          missing_from(roster) + " of " + std::to_string(self.size) + " did not reach " +
              self.name() + " within " + in_seconds(timeout) +
              (dropped.empty() ? "" : "; " + dropped) + (note.empty() ? "" : "; " + note),
          "check that they were started with the same rendezvous"};
}

Error ended_while_joining(const RankIdentity& who, const std::string& reason) {
  return {ErrorCode::kPeerLost,
          who.name() + " is gone: it ended while the ranks joined (" + reason + ")",
          "see the last output of that rank", who.rank, who.host};
}

// Why no further rank was accepted. `watched` has the descriptor that cancels, then the connection
// of each peer.
Error obstacle_of(const Error& error, const std::vector<pollfd>& watched,
                  const std::vector<AcceptedPeer>& peers) {
  if (error.code != ErrorCode::kPeerLost) return error;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (watched[i + 1].revents == 0) continue;
    return ended_while_joining(peers[i].introduction, reason_of_end(0));
  }
  return {ErrorCode::kPeerLost, "another rank has failed"};
}

}  // namespace

void refuse(const Error& reason, const std::vector<AcceptedPeer>& peers, Deadline deadline) {
  for (const AcceptedPeer& peer : peers) {
    static_cast<void>(
        send_all(peer.socket, peer.handshake.seal(kLabel, encode_refusal(reason)), deadline));
  }
}

Bytes key_of_world(const Bytes& key, const Roster& roster) {
  const Digest digest = hmac(key, {view_of("world"), encode_roster(roster)});
  return {digest.begin(), digest.end()};
}

Result<Roster> gather(Acceptor& door, const RankIdentity& self, const Terms& terms,
                      std::vector<AcceptedPeer>& peers, Deadline deadline,
                      std::chrono::milliseconds timeout, int cancel, const std::string& note) {
  Roster roster{std::vector<Member>(static_cast<std::size_t>(self.size)), terms};
  roster.members[0] = member_of(self);
  std::vector<pollfd> watched = {{cancel, POLLIN, 0}};
  while (peers.size() + 1 < roster.members.size()) {
    Result<AcceptedPeer> peer = door.next(deadline, watched);
    std::optional<Error> objection;
    if (!peer) {
      objection = peer.error().code == ErrorCode::kTimeout
                      ? did_not_come(roster, self, door, timeout, note)
                      : obstacle_of(peer.error(), watched, peers);
    } else {
      if (peer->handshake.purpose != Purpose::kRendezvous) continue;
      objection = objection_to(peer->introduction, self, roster);
      peers.push_back(*std::move(peer));
      watched.push_back({peers.back().socket.get(), POLLRDHUP, 0});
    }
    if (objection) {
      refuse(*objection, peers, Clock::now() + std::chrono::seconds(1));
      return *std::move(objection);
    }
    const RankIdentity& who = peers.back().introduction;
    roster.members[static_cast<std::size_t>(who.rank)] = member_of(who);
  }
  // Close the listener before any rank has the roster: a rank that leaves this world and joins the
  // next one must not connect to a listener that this world no longer serves.
  door.close();
  shorten_host_ids(roster);
  return roster;
}

Status hand_out(const Roster& roster, const std::vector<AcceptedPeer>& peers, Deadline deadline) {
  const Bytes answer = encode_roster(roster);
  for (const AcceptedPeer& peer : peers) {
    if (Status sent = send_all(peer.socket, peer.handshake.seal(kLabel, answer), deadline); !sent) {
      return ended_while_joining(peer.introduction, sent.error().message);
    }
  }
  return {};
}

Result<Roster> receive_roster(const Descriptor& socket, const Handshake& handshake,
                              const RankIdentity& self, Deadline deadline, int cancel) {
  Result<Bytes> answer =
      receive_sealed(socket, handshake, kLabel, kLongestAnswer, deadline, cancel);
  if (!answer && answer.error().code == ErrorCode::kTimeout && is_readable(cancel)) {
    return Error{ErrorCode::kPeerLost,
                 self.name() + " was cancelled while it waited for the other ranks"};
  }
  if (!answer && answer.error().code == ErrorCode::kTimeout) {
    return Error{ErrorCode::kTimeout,
                 "rank 0 still waited for other ranks at the time limit of " + self.name(),
                 "check that all ranks were started"};
  }
  if (!answer) {
    Error error = answer.error();
    error.message =
        "rank 0 ended while " + self.name() + " waited for the other ranks: " + error.message;
    error.rank = 0;
    return error;
  }
  return decode_roster(*answer, self.size);
}

}  // namespace muster::collective
