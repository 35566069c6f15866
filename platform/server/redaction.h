// The scheduler's sentences as somebody may read them who does not see every project.
//
// A sentence about one job may name others: who holds what it needs, for whom room is kept, who it
// was evicted for. What names can stand in it is known by their places ("'NAME' of project NAME",
// "held by job: ..."), and there only names that the reader sees are let through. What is not known
// to be visible is never compared with what exists: from what is hidden in a sentence nobody can
// learn which names there are. With the names go their shares and counts; sums over all remain.
//
// Pure; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::server {

/// What the reader may read the name of.
struct VisibleNames {
  std::function<bool(const std::string& name)> project;
  std::function<bool(const std::string& name)> job;
};

/// A reason, an event, an error.
std::string redacted_sentence(std::string_view sentence, const VisibleNames& visible);

/// Sentences beside a reason. One that holds nothing but what is hidden is left out.
std::vector<std::string> redacted_details(const std::vector<std::string>& details,
                                          const VisibleNames& visible);

/// Of a forecast: "'NAME' was evicted for ...". All that are hidden become one sentence.
std::vector<std::string> redacted_evictions(const std::vector<std::string>& evictions,
                                            const VisibleNames& visible);

}  // namespace muster::server
