// Small things that ranks tell each other before they train: bytes of one rank for all, and whether
// all describe the same.
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

/// The root's bytes, on every rank. What others give is not looked at.
collective::Result<std::string> broadcast_bytes(collective::Session& session, std::string_view name,
                                                std::string bytes, int root);

/// Whether all ranks have the same lines.
///
/// Errors: kMismatch, the same on all ranks: the first rank that differs from rank 0, with the
/// first line in which it does on both; `what` is what the lines describe ("models").
collective::Status agree(collective::Session& session, std::string_view name,
                         const std::string& what, const std::vector<std::string>& lines);

/// Tells everyone what `root` has come to: its Status becomes that of all.
collective::Status share_status(collective::Session& session, std::string_view name,
                                const collective::Status& mine, int root);

// Lists of lines as one text, in which each line has an end: for files and messages.

inline std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// The lines that joined_lines() was given.
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
