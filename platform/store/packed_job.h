// An ended job in memory: its facts (job/job_facts.h) and its document, compressed, in one block of
// some hundred bytes. A Job occupies 12 KiB.
//
// The documents of one owner resemble each other: the beginning of the first that is packed is the
// dictionary for the others, whose compressed size falls to a quarter by that.
//
// The row of an ended job keeps the facts beside the document, so that the start of a server parses
// only the documents of other jobs.
//
// Immutable; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/job.h"
#include "job/job_facts.h"

namespace muster::store {

/// The facts of a job as its row keeps them: behind their version and a checksum, which also covers
/// `checksum`, that of the row. Empty: the job has not ended.
std::string stored_facts(const job::Job& job, int64_t checksum);

class PackedJob {
 public:
  /// None.
  PackedJob() = default;
  /// `document`: to_document(job). Any job that has ended can be packed.
  PackedJob(const job::Job& job, std::string_view document);
  /// From a row whose document has the checksum `checksum`. None: the row keeps no facts, those of
  /// another release, or damaged ones, and its document must be read.
  static PackedJob from_row(std::string_view stored_facts, std::string_view document,
                            int64_t checksum);

  explicit operator bool() const { return block_ != nullptr; }

  // REQUIRES: it is not none.

  /// Valid as long as this object, also after it was moved.
  job::JobFacts facts() const { return job::facts_in(block_.get()); }
  job::PackedNames names() const { return job::names_in(block_.get()); }
  /// The whole job. kInternal: its document cannot be read.
  base::Result<job::Job> job() const;
  std::string document() const;
  /// What it occupies.
  size_t size() const;
  const char* address() const { return block_.get(); }

 private:
  PackedJob(std::string_view facts, const std::string& owner, std::string_view document);

  std::unique_ptr<char[]> block_;
};

}  // namespace muster::store
