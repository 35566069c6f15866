// A job as the database stores it: a damaged row is an error, never a crash. A job that can be read can
// be packed in the server's memory, and the packed job is the same job with the same facts.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_facts.h"
#include "store/packed_job.h"
#include "store/records.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool have_same_origin(const muster::job::JobFacts& left, const muster::job::JobFacts& right) {
  if (!left.origin || !right.origin) return left.origin.has_value() == right.origin.has_value();
  return left.origin->kind == right.origin->kind && left.origin->name == right.origin->name &&
         left.origin->id == right.origin->id && left.origin->member == right.origin->member;
}

void compare_facts(const muster::job::JobFacts& whole, const muster::job::JobFacts& packed) {
  require(whole.id == packed.id && whole.name == packed.name && whole.project == packed.project);
  require(whole.owner == packed.owner && whole.kind == packed.kind && whole.phase == packed.phase);
  require(whole.submitted == packed.submitted && whole.started == packed.started);
  require(whole.ended == packed.ended && whole.exit_code == packed.exit_code);
  require(whole.attempt == packed.attempt && have_same_origin(whole, packed));
  require(whole.priority() == packed.priority() && whole.gpu_milli() == packed.gpu_milli());
  require(whole.has_labels() == packed.has_labels() && whole.held() == packed.held());
  require(whole.first_event() == packed.first_event());
  require(whole.last_event() == packed.last_event() && whole.keep_for() == packed.keep_for());
  for (const auto& [name, value] : whole.spec->labels) require(packed.label(name) == value);
  std::string scratch;
  std::string other_scratch;
  require(whole.searched_text(scratch) == packed.searched_text(other_scratch));
  std::vector<muster::job::RunSpan> runs;
  packed.each_run([&](const muster::job::RunSpan& run) { runs.push_back(run); });
  require(runs == muster::job::run_spans(*whole.job));
  std::vector<std::string> trees;
  whole.each_tree([&](std::string_view id) { trees.emplace_back(id); });
  size_t count = 0;
  packed.each_tree([&](std::string_view id) {
    require(count < trees.size() && trees[count] == id);
    ++count;
  });
  require(count == trees.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const auto job = store::from_document<job::Job>({reinterpret_cast<const char*>(data), size});
  if (!job) return 0;
  const std::string document = store::to_document(*job);
  const auto again = store::from_document<job::Job>(document);
  require(again && *again == *job);

  const store::PackedJob packed(*job, document);
  require(packed.document() == document);
  compare_facts(job::facts_of(*job), packed.facts());
  const job::PackedNames names = packed.names();
  require(names.id == job->id && names.name == job->spec.name &&
          names.project == job->spec.project);
  return 0;
}
