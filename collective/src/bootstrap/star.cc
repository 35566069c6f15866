#include "bootstrap/star.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transport/error_bytes.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

enum class Kind : std::uint8_t { kContent = 1, kError = 2 };

constexpr std::size_t kHeadBytes = 4 + kDigestBytes;
constexpr std::size_t kMostMine = 4096;
// A message holds an error at most, or the contents of a whole world.
constexpr std::size_t kMostUp = std::size_t{64} << 10;
constexpr std::size_t kMostDown = std::size_t{256} << 20;

// Numbered, so that no message can be taken for another.
std::string label(bool down, int count) {
  return (down ? "down " : "up ") + std::to_string(count);
}

Bytes content(ByteView bytes) {
  return ByteWriter().number(static_cast<std::uint8_t>(Kind::kContent)).raw(bytes).take();
}

Bytes encode_error(const Error& error) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(Kind::kError));
  write_error(writer, error);
  return writer.take();
}

}  // namespace

Star::Star(Introduction self, std::vector<Guest> guests) : self_(std::move(self)) {
  for (Guest& guest : guests) {
    spokes_.push_back({guest.introduction.rank, guest.introduction.host, std::move(guest.socket),
                       std::move(guest.handshake)});
  }
  std::ranges::sort(spokes_, {}, &Spoke::rank);
}

Star::Star(Introduction self, Descriptor socket, Handshake handshake, std::string host_of_rank_0)
    : self_(std::move(self)) {
  spokes_.push_back({0, std::move(host_of_rank_0), std::move(socket), std::move(handshake)});
}

Result<std::vector<Bytes>> Star::exchange(ByteView mine, Deadline deadline) {
  mine = mine.first(std::min(mine.size(), kMostMine));
  if (!is_host()) {
    if (Status sent = send(spokes_[0], content(mine), deadline); !sent) return sent.error();
  }
  if (Status come = wait_for_messages(deadline); !come) return come.error();
  std::vector<Bytes> all;
  if (is_host()) {
    ByteWriter writer;
    writer.number(static_cast<std::uint32_t>(mine.size())).raw(mine);
    all.emplace_back(mine.begin(), mine.end());
    for (Spoke& spoke : spokes_) {
      all.push_back(*std::exchange(spoke.message, std::nullopt));
      writer.number(static_cast<std::uint32_t>(all.back().size())).raw(all.back());
    }
    const Bytes answer = content(writer.take());
    for (Spoke& spoke : spokes_) {
      if (Status sent = send(spoke, answer, deadline); !sent) return sent.error();
    }
    return all;
  }
  const Bytes answer = *std::exchange(spokes_[0].message, std::nullopt);
  ByteReader reader(answer);
  for (int rank = 0; rank < self_.size; ++rank) {
    const ByteView part = reader.raw(reader.number<std::uint32_t>());
    all.emplace_back(part.begin(), part.end());
  }
  if (!reader.ok() || !reader.at_end()) {
    return Error{ErrorCode::kMismatch, "rank 0 sent what cannot be read"};
  }
  return all;
}

Status Star::wait_for_messages(Deadline deadline) {
  while (!std::ranges::all_of(spokes_, [](const Spoke& spoke) { return !!spoke.message; })) {
    std::vector<pollfd> entries;
    prepare(entries);
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_left(deadline));
    if (ready < 0 && errno != EINTR) return system_error("cannot wait for the others", errno);
    if (ready > 0) {
      if (Status done = attend(entries); !done) return done;
    } else if (Clock::now() >= deadline) {
      return not_in_time();
    }
  }
  return {};
}

void Star::prepare(std::vector<pollfd>& entries) const {
  for (const Spoke& spoke : spokes_) {
    // Who has said what it has to say for now cannot be listened to, but seen to die.
    const auto events = static_cast<short>(spoke.message ? POLLRDHUP : POLLIN | POLLRDHUP);
    entries.push_back({spoke.socket.get(), events, 0});
  }
}

Status Star::attend(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < spokes_.size(); ++i) {
    if (entries[i].revents == 0) continue;
    if (spokes_[i].message) return gone(spokes_[i], reason_of_end(0));
    if (Status done = listen(spokes_[i]); !done) return done;
  }
  return {};
}

Status Star::listen(Spoke& spoke) {
  std::array<std::byte, 16'384> buffer;
  while (!spoke.message) {
    std::size_t wanted = kHeadBytes;
    if (spoke.received.size() >= kHeadBytes) {
      ByteReader reader(spoke.received);
      const std::size_t length = reader.number<std::uint32_t>();
      if (length > (is_host() ? kMostUp : kMostDown)) return gone(spoke, "it sent nonsense");
      wanted += length;
      if (spoke.received.size() == wanted) return take_whole(spoke);
    }
    const std::size_t room = std::min(buffer.size(), wanted - spoke.received.size());
    const Transfer got = receive_some(spoke.socket, std::span(buffer).first(room));
    if (got.outcome == Transfer::Outcome::kWouldBlock) return {};
    if (got.outcome == Transfer::Outcome::kEnded) return gone(spoke, reason_of_end(got.reason));
    const auto bytes = ByteView(buffer).first(got.bytes);
    spoke.received.insert(spoke.received.end(), bytes.begin(), bytes.end());
  }
  return {};
}

Status Star::take_whole(Spoke& spoke) {
  ByteReader reader(spoke.received);
  static_cast<void>(reader.number<std::uint32_t>());
  const ByteView seal = reader.raw(kDigestBytes);
  const ByteView payload = ByteView(spoke.received).subspan(kHeadBytes);
  const Digest mac = spoke.handshake.mac(label(!is_host(), spoke.received_count++), payload);
  if (payload.empty() || !equal_in_constant_time(mac, seal)) {
    return Error{ErrorCode::kAuthentication, "what rank " + std::to_string(spoke.rank) +
                                                 " sent does not carry the seal of the key"};
  }
  ByteReader inside(payload);
  if (Kind{inside.number<std::uint8_t>()} == Kind::kError) return read_error(inside);
  spoke.message.emplace(payload.begin() + 1, payload.end());
  spoke.received.clear();
  return {};
}

Status Star::send(Spoke& spoke, const Bytes& payload, Deadline deadline) {
  const std::string name = label(is_host(), spoke.sent_count++);
  Status sent = send_all(spoke.socket, spoke.handshake.seal(name, payload), deadline);
  if (sent) return {};
  // An answer may be there that says why the other side has ended.
  if (Status heard = spoke.message ? Status() : listen(spoke); !heard) return heard;
  return gone(spoke, sent.error().message);
}

Error Star::fail(Error error) {
  const Deadline deadline = Clock::now() + std::chrono::seconds(1);
  for (Spoke& spoke : spokes_) {
    const std::string name = label(is_host(), spoke.sent_count++);
    static_cast<void>(
        send_all(spoke.socket, spoke.handshake.seal(name, encode_error(error)), deadline));
  }
  return error;
}

Error Star::gone(const Spoke& spoke, const std::string& reason) const {
  if (is_host()) {
    return {ErrorCode::kPeerLost,
            "rank " + std::to_string(spoke.rank) + " on host " + spoke.host +
                " is gone: it ended while the world gathered (" + reason + ")",
            "its own last output says why it ended", spoke.rank, spoke.host};
  }
  return {ErrorCode::kPeerLost,
          "rank 0 on host " + spoke.host + " ended while " + self_.name() +
              " waited for the world to gather: " + reason,
          "its own last output says why it ended", 0, spoke.host};
}

Error Star::not_in_time() const {
  for (const Spoke& spoke : spokes_) {
    if (spoke.message || !is_host()) continue;
    return {ErrorCode::kTimeout,
            "rank " + std::to_string(spoke.rank) + " on host " + spoke.host +
                " did not finish joining " + self_.name() + " in time",
            "raise MUSTER_COLLECTIVE_TIMEOUT if its host is that slow", spoke.rank, spoke.host};
  }
  return {ErrorCode::kTimeout,
          "rank 0 still waited for other ranks when " + self_.name() + " had waited long enough",
          "see whether all ranks were started"};
}

}  // namespace muster::collective
