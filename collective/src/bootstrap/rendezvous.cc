#include "bootstrap/rendezvous.h"

#include <optional>
#include <utility>

#include "transport/error_bytes.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

// The answer of rank 0: u8 kind, then for a roster the terms, u32 members, and each one's texts and
// u64 arena; for a refusal the error.
enum class Answer : std::uint8_t { kRoster = 1, kRefusal = 2 };

constexpr std::string_view kLabel = "host";
// Four texts of up to 255 bytes a rank: room for sixty thousand ranks.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;

Member member_of(const Introduction& who) {
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
    return Error{ErrorCode::kMismatch, "rank 0 sent a roster that cannot be read"};
  }
  return roster;
}

std::optional<Error> objection_to(const Introduction& guest, const Introduction& self,
                                  const Roster& roster) {
  if (guest.size != self.size) {
    return Error{ErrorCode::kMismatch,
                 guest.name() + " belongs to a world of " + std::to_string(guest.size) +
                     " ranks, but " + self.name() + " to one of " + std::to_string(self.size),
                 "start all ranks of a job with the same world size"};
  }
  if (guest.rank <= 0 || guest.rank >= self.size) {
    return Error{ErrorCode::kMismatch,
                 guest.name() + " came to a world of " + std::to_string(self.size) +
                     " ranks, whose rank 0 is on host " + self.host,
                 "number the ranks of a job from 0 to size - 1"};
  }
  const Member& earlier = roster.members[static_cast<std::size_t>(guest.rank)];
  if (earlier.endpoint.empty()) return std::nullopt;
  return Error{ErrorCode::kMismatch,
               "rank " + std::to_string(guest.rank) + " came twice: from host " + earlier.host +
                   " (" + earlier.endpoint + ") and from host " + guest.host + " (" +
                   guest.endpoint + ")",
               "give every process of a job a rank of its own"};
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

Error did_not_come(const Roster& roster, const Introduction& self, const Acceptor& door,
                   std::chrono::milliseconds timeout) {
  const std::string dropped = door.dropped();
  return {ErrorCode::kTimeout,
          missing_from(roster) + " of " + std::to_string(self.size) + " did not come to " +
              self.name() + " within " + in_seconds(timeout) +
              (dropped.empty() ? "" : "; " + dropped),
          "see whether they were started, and with the same rendezvous"};
}

void refuse(const Error& reason, const std::vector<Guest>& guests, Deadline deadline) {
  for (const Guest& guest : guests) {
    static_cast<void>(
        send_all(guest.socket, guest.handshake.seal(kLabel, encode_refusal(reason)), deadline));
  }
}

}  // namespace

Result<Roster> gather(Acceptor& door, const Introduction& self, const Terms& terms,
                      std::vector<Guest>& guests, Deadline deadline,
                      std::chrono::milliseconds timeout, int cancel) {
  Roster roster{std::vector<Member>(static_cast<std::size_t>(self.size)), terms};
  roster.members[0] = member_of(self);
  while (guests.size() + 1 < roster.members.size()) {
    Result<Guest> guest = door.next(deadline, cancel);
    std::optional<Error> objection;
    if (!guest) {
      objection = guest.error().code == ErrorCode::kTimeout
                      ? did_not_come(roster, self, door, timeout)
                      : guest.error();
    } else {
      if (guest->handshake.purpose != Purpose::kRendezvous) continue;
      objection = objection_to(guest->introduction, self, roster);
      guests.push_back(*std::move(guest));
    }
    if (objection) {
      refuse(*objection, guests, Clock::now() + std::chrono::seconds(1));
      return *std::move(objection);
    }
    const Introduction& who = guests.back().introduction;
    roster.members[static_cast<std::size_t>(who.rank)] = member_of(who);
  }
  // Before anyone has the roster: a rank that is done with this world and wants to join the next
  // one must not get into the queue of a door that nobody attends any more.
  door.close();
  return roster;
}

Status hand_out(const Roster& roster, const std::vector<Guest>& guests, Deadline deadline) {
  const Bytes answer = encode_roster(roster);
  for (const Guest& guest : guests) {
    const Introduction& who = guest.introduction;
    if (Status sent = send_all(guest.socket, guest.handshake.seal(kLabel, answer), deadline);
        !sent) {
      return Error{
          ErrorCode::kPeerLost,
          who.name() + " is gone: it ended while the world gathered (" + sent.error().message + ")",
          "its own last output says why it ended", who.rank, who.host};
    }
  }
  return {};
}

Result<Roster> receive_roster(const Descriptor& socket, const Handshake& handshake,
                              const Introduction& self, Deadline deadline) {
  Result<Bytes> answer = receive_sealed(socket, handshake, kLabel, kLongestAnswer, deadline);
  if (!answer && answer.error().code == ErrorCode::kTimeout) {
    return Error{
        ErrorCode::kTimeout,
        "rank 0 still waited for other ranks when " + self.name() + " had waited long enough",
        "see whether all ranks were started"};
  }
  if (!answer) {
    Error error = answer.error();
    error.message =
        "rank 0 ended while " + self.name() + " waited for the world to gather: " + error.message;
    error.rank = 0;
    return error;
  }
  return decode_roster(*answer, self.size);
}

}  // namespace muster::collective
