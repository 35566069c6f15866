// Small messages between the ranks before they train: bytes of one rank for all ranks, and the
// comparison of descriptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"
#include "muster/collective/session.h"

namespace muster::training {

/// The bytes of every rank, by rank.
collective::Result<std::vector<std::string>> gather(collective::Session& session,
                                                    std::string_view name, std::string_view mine);

/// Returns the root's bytes on every rank. `bytes` is ignored on other ranks.
collective::Result<std::string> broadcast_bytes(collective::Session& session, std::string_view name,
                                                std::string bytes, int root);

/// Compares the lines of all ranks.
///
/// Errors: kMismatch, equal on all ranks, with the first rank that differs from rank 0, and with
/// the first different line of both. `what` is the subject of the lines ("models").
collective::Status agree(collective::Session& session, std::string_view name,
                         const std::string& what, const std::vector<std::string>& lines);

/// Sends the root's Status to all ranks, and returns it on all of them.
collective::Status share_status(collective::Session& session, std::string_view name,
                                const collective::Status& mine, int root);

/// Combines the outcomes of all ranks: every rank returns the first error, with its rank.
collective::Status first_of(collective::Session& session, const std::string& name,
                            const collective::Status& mine);

// Conversions between a list of lines and one text, in which each line has an end, for files and
// messages.

inline std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// The inverse of joined_lines().
inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace muster::training
