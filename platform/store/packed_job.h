// An ended job in memory: its facts (job/job_facts.h) and its document, compressed, in one block of
// some hundred bytes. A Job occupies 12 KiB.
//
// The documents of one owner resemble each other: the first of them that is packed is the dictionary
// for the others, whose compressed size falls to a quarter by that.
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

class PackedJob {
 public:
  /// None.
  PackedJob() = default;
  /// `document`: to_document(job). Any job that has ended can be packed.
  PackedJob(const job::Job& job, std::string_view document);

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
  std::unique_ptr<char[]> block_;
};

}  // namespace muster::store
