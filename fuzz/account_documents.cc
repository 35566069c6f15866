// Users, tokens, secrets and audit records as the database keeps them: a damaged row is an error,
// never a crash.
#include <cstdlib>
#include <string_view>

#include "store/document.h"

namespace {

template <class Read, class Write>
void comes_back(std::string_view document, const Read& read, const Write& write) {
  const auto value = read(document);
  if (!value) return;
  const auto again = read(write(*value));
  if (!again || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::store;
  const std::string_view document(reinterpret_cast<const char*>(data), size);
  comes_back(document, from_document<access::User>, to_document<access::User>);
  comes_back(document, from_document<access::Token>, to_document<access::Token>);
  comes_back(document, from_document<access::Secret>, to_document<access::Secret>);
  comes_back(document, from_document<access::AuditRecord>, to_document<access::AuditRecord>);
  return 0;
}
