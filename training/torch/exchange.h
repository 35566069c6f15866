// Small things that ranks tell each other before they train: bytes of one rank for all, and whether
// all describe the same.
#pragma once

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

}  // namespace muster::training
