#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/plugin_backend.h"

namespace muster::collective {
namespace {

// One rank's word, cut to a length that all know.
struct Word {
  std::array<char, 512> message;
  std::array<char, 512> advice;
};

void put(std::array<char, 512>& into, const std::string& text) {
  const std::size_t length = std::min(text.size(), into.size() - 1);
  std::memcpy(into.data(), text.data(), length);
}

}  // namespace

Status agree(const World& world, Backend* bootstrap, const Status& own) {
  if (bootstrap == nullptr) return own;
  Word word = {};
  if (!own) {
    put(word.message, own.error().message);
    put(word.advice, own.error().advice);
  }
  const auto size = static_cast<std::size_t>(world.size);
  std::vector<Word> words(size);
  const std::vector<std::uint64_t> bytes(size, sizeof(Word));
  const Call call{.kind = CallKind::kAllGather, .count = sizeof(Word) * size};
  Status gathered = bootstrap->all_gather(call, reinterpret_cast<const std::byte*>(&word),
                                          reinterpret_cast<std::byte*>(words.data()), bytes);
  if (!gathered) return gathered;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (words[rank].message[0] == '\0') continue;
    return Error{ErrorCode::kConfiguration,
                 world.name_of(static_cast<int>(rank)) + ": " + words[rank].message.data(),
                 words[rank].advice.data(), static_cast<int>(rank), world.hosts[rank]};
  }
  return {};
}

}  // namespace muster::collective
