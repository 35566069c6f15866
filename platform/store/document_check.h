// Reads the documents of a store one by one and says which cannot be read, or belong to another
// row.
//
// Pure; the rows are brought by whoever knows the database.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::store {

/// A table with documents.
struct DocumentTable {
  const char* name;
  const char* noun;
  /// SQL of both databases: what the columns of a row say that its document says, too.
  const char* identity;
  /// The same of a document.
  base::Result<std::string> (*identity_of)(std::string_view document);

  /// "SELECT identity, document FROM name".
  std::string query() const;
};

extern const std::span<const DocumentTable> kDocumentTables;

/// What is wrong, a sentence each; at most a hundred, for a person reads them.
class Faults {
 public:
  void add(std::string sentence);
  void check(const DocumentTable& table, std::string_view identity, std::string_view document);
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace muster::store
