// Rows for facts: each fact is sent as data and as a sentence, and stored as data only. A client
// that is older than its server stores the sentence of an unknown fact as a Remark.
//
//   sentence_row<&Event::what>("text"), fact_row<&Event::what>("fact")
//
// The row of the sentence comes first: reading it sets the Remark, which the data then replaces.
//
// For .cc files with tables, like record/field.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "job/fact_json.h"
#include "record/field.h"
#include "words/sentence.h"

namespace muster::words {

// Reads a fact of each type.
inline std::optional<job::Fact> known_fact(const record::Value& data, const job::Fact*) {
  return job::fact_of(data);
}
inline std::optional<job::Reason> known_fact(const record::Value& data, const job::Reason*) {
  return job::reason_of(data);
}
inline std::optional<job::FailureCause> known_fact(const record::Value& data,
                                                   const job::FailureCause*) {
  return job::failure_cause_of(data);
}
inline std::optional<job::Eviction> known_fact(const record::Value& data, const job::Eviction*) {
  return job::eviction_of(data);
}
inline std::optional<job::JobRef> known_fact(const record::Value& data, const job::JobRef*) {
  return job::job_ref_of(data);
}

/// A fact, or an optional of one, as data: {"kind": ..., its fields}.
template <class Member>
class FactType final : public record::Type {
 public:
  void write(record::JsonWriter& json, const void* value, record::Form) const override {
    if constexpr (record::kIsOptional<Member>) {
      job::write_data(json, **static_cast<const Member*>(value));
    } else {
      job::write_data(json, *static_cast<const Member*>(value));
    }
  }
  void read(const record::Input& input, void* value) const override {
    using Fact = std::remove_cvref_t<decltype(fact_in(std::declval<Member&>()))>;
    if (auto known = known_fact(input.value, static_cast<const Fact*>(nullptr))) {
      *static_cast<Member*>(value) = *std::move(known);
    } else if (input.form == record::Form::kStore) {
      input.note("is not a known fact");
    }
  }
  bool is_absent(const void* value) const override {
    if constexpr (record::kIsOptional<Member>) {
      return !static_cast<const Member*>(value)->has_value();
    } else {
      return false;
    }
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const Member*>(a) == *static_cast<const Member*>(b);
  }
  record::Schema schema(const record::Notes&, record::Schemas&) const override {
    return {{"type", "object"}};
  }

 private:
  static const auto& fact_in(const Member& member) {
    if constexpr (record::kIsOptional<Member>) {
      return *member;
    } else {
      return member;
    }
  }
};

/// The member as data.
template <auto Member>
record::Row fact_row(const char* name, const record::Notes& notes = {}) {
  using Of = record::MemberOf<decltype(Member)>;
  return record::typed_field<Member>(
      name, record::shared_type(std::make_unique<const FactType<typename Of::MemberType>>()),
      notes);
}

template <auto Member, class Record = typename record::MemberOf<decltype(Member)>::RecordType>
std::string sentence_of(const Record& record) {
  return sentence(record.*Member);
}
template <auto Member, class Record = typename record::MemberOf<decltype(Member)>::RecordType>
void take_sentence(Record& record, std::string text) {
  record.*Member = job::Remark{std::move(text)};
}

/// The member as a sentence.
template <auto Member>
record::Row sentence_row(const char* name, const record::Notes& notes = {}) {
  using Record = typename record::MemberOf<decltype(Member)>::RecordType;
  return record::computed<Record, sentence_of<Member>, take_sentence<Member>>(name, notes);
}

/// The details of a Reason as sentences.
template <auto Member>
class DetailsType final : public record::Type {
 public:
  using Record = typename record::MemberOf<decltype(Member)>::RecordType;

  void write(record::JsonWriter& json, const void* record, record::Form) const override {
    json.open('[');
    for (const std::string& each : details(static_cast<const Record*>(record)->*Member)) {
      json.prose(each);
    }
    json.close(']');
  }
  void read(const record::Input& input, void* record) const override {
    record::read_list(input, "texts", [&](const record::Input& element) {
      auto text = record::read_text(element);
      if (!text) return;
      (static_cast<Record*>(record)->*Member).details.emplace_back(job::Remark{*std::move(text)});
    });
  }
  bool is_same(const void*, const void*) const override { return false; }
  record::Schema schema(const record::Notes&, record::Schemas&) const override {
    return record::schema_of_list({{"$ref", "#/components/schemas/Sentence"}});
  }
};

/// A reason: its sentence, further sentences under the name `details`, and the data.
template <auto Member>
std::vector<record::Row> reason_rows(const char* details, const char* help) {
  record::Row sentences = record::computed<typename record::MemberOf<decltype(Member)>::RecordType,
                                           sentence_of<Member>>(
      details, {.help = "The holders of the resources that the job needs, and remedies."});
  sentences.type = record::shared_type(std::make_unique<const DetailsType<Member>>());
  return {sentence_row<Member>("reason", {.help = help}), std::move(sentences),
          fact_row<Member>("reason_facts",
                           {.help = "`reason` as data: its `kind`, and the fields of that kind; "
                                    "`details` has such an object for each fact behind it."})};
}

}  // namespace muster::words
