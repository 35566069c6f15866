#include "dialects/gradient/job_pages.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::dialects::gradient {

JobPages::JobPages(cli::Connection& connection, const std::vector<std::string>& projects,
                   const std::vector<std::string>& tags)
    : connection_(connection) {
  const api::JobQuery query{.labels = tags, .order = api::JobQuery::Order::kNewestFirst};
  for (const std::string& project : projects) {
    sources_.push_back({.query = query});
    sources_.back().query.project = project;
  }
  if (projects.empty()) sources_.push_back({.query = query});
}

base::Result<std::vector<job::Job>> JobPages::next(size_t count) {
  std::vector<job::Job> page;
  while (page.size() < count) {
    MUSTER_CHECK(fill(count - page.size()));
    Source* const source = newest();
    if (source == nullptr) break;
    page.push_back(std::move(source->read.front()));
    source->read.pop_front();
  }
  return page;
}

base::Result<bool> JobPages::has_more() {
  // Where some are left that were read already, no request is needed.
  if (newest() != nullptr) return true;
  MUSTER_CHECK(fill(1));
  return newest() != nullptr;
}

base::Result<void> JobPages::fill(size_t wanted) {
  for (Source& source : sources_) {
    if (!source.read.empty() || source.is_read_out) continue;
    // One more than is wanted, so that has_more() is known without asking again.
    source.query.limit = static_cast<int>(std::min<size_t>(wanted + 1, api::kMostJobs));
    MUSTER_TRY(api::JobPage page,
               connection_.call([&](api::Client& client) { return client.list(source.query); }));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(source.read));
    source.query.cursor = page.next;
    source.is_read_out = page.next.empty();
  }
  return {};
}

JobPages::Source* JobPages::newest() {
  Source* best = nullptr;
  for (Source& source : sources_) {
    if (source.read.empty()) continue;
    const bool is_newer =
        best == nullptr || source.read.front().submitted > best->read.front().submitted;
    if (is_newer) best = &source;
  }
  return best;
}

}  // namespace muster::dialects::gradient
