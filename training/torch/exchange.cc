#include "exchange.h"

#include <numeric>
#include <utility>

namespace muster::training {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

namespace {

Status finish(Session& session, const Result<Ticket>& ticket) {
  return ticket ? session.wait(*ticket) : Status(ticket.error());
}

std::string quoted_line(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? "'" + lines[index] + "'" : "nothing more";
}

}  // namespace

Result<std::vector<std::string>> gather(Session& session, std::string_view name,
                                        std::string_view mine) {
  std::string all;
  std::vector<std::uint64_t> lengths;
  const auto allocate = [&](std::span<const std::uint64_t> bytes_of_rank) -> void* {
    lengths.assign(bytes_of_rank.begin(), bytes_of_rank.end());
    all.resize(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
    return all.data();
  };
  if (Status gathered =
          finish(session, session.all_gather(name, mine.data(), mine.size(), allocate));
      !gathered) {
    return gathered.error();
  }
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (const std::uint64_t length : lengths) {
    parts.push_back(all.substr(begin, length));
    begin += length;
  }
  return parts;
}

Result<std::string> broadcast_bytes(Session& session, std::string_view name, std::string bytes,
                                    int root) {
  const std::string base(name);
  std::uint64_t length = bytes.size();
  if (Status sent =
          finish(session, session.broadcast(base + ".length", &length, sizeof length, root));
      !sent) {
    return sent.error();
  }
  if (session.rank() != root) bytes.assign(length, '\0');
  if (Status sent = finish(session, session.broadcast(base + ".bytes", bytes.data(), length, root));
      !sent) {
    return sent.error();
  }
  return bytes;
}

Status agree(Session& session, std::string_view name, const std::string& what,
             const std::vector<std::string>& lines) {
  const Result<std::vector<std::string>> texts = gather(session, name, joined_lines(lines));
  if (!texts) return texts.error();
  const std::vector<std::string> first = split_lines(texts->front());
  for (std::size_t rank = 1; rank < texts->size(); ++rank) {
    if ((*texts)[rank] == texts->front()) continue;
    const std::vector<std::string> other = split_lines((*texts)[rank]);
    std::size_t line = 0;
    while (line < first.size() && line < other.size() && first[line] == other[line]) ++line;
    return Error{ErrorCode::kMismatch,
                 "the ranks have different " + what + ": rank 0 has " + quoted_line(first, line) +
                     " where rank " + std::to_string(rank) + " has " + quoted_line(other, line),
                 "start all ranks with the same program and the same settings",
                 static_cast<int>(rank)};
  }
  return {};
}

Status share_status(Session& session, std::string_view name, const Status& mine, int root) {
  // The code, then the message and the advice, each terminated by a zero byte.
  std::string encoded;
  if (!mine) {
    encoded = static_cast<char>(mine.error().code) + mine.error().message + '\0' +
              mine.error().advice + '\0';
  }
  const Result<std::string> received = broadcast_bytes(session, name, std::move(encoded), root);
  if (!received) return received.error();
  if (session.rank() == root || received->empty()) return mine;
  const std::size_t end = received->find('\0', 1);
  return Error{static_cast<ErrorCode>(received->front()), received->substr(1, end - 1),
               received->substr(end + 1, received->size() - end - 2)};
}

Status first_of(Session& session, const std::string& name, const Status& mine) {
  const std::string encoded =
      mine ? "" : std::string(1, static_cast<char>(mine.error().code)) + mine.error().to_string();
  const Result<std::vector<std::string>> all = gather(session, name, encoded);
  if (!all) return all.error();
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const std::string& text = (*all)[rank];
    if (text.empty()) continue;
    return Error{static_cast<ErrorCode>(text.front()),
                 "rank " + std::to_string(rank) + ": " + text.substr(1)};
  }
  return {};
}

}  // namespace muster::training
