// Whatever bytes are read, the result is a value or an error, never an exception or a crash. (The
// sanitizers check these tests.)
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "api/cluster_wire.h"
#include "api/test_values.h"
#include "api/wire.h"

namespace muster::api {
namespace {

/// Characters of JSON and characters that it must not contain, so that random texts are nearly
/// valid.
constexpr std::string_view kJsonAlphabet = "\"\\,:{}[]019-e.tfnu \n\x80\xFF";

/// Every reader, with a document that it accepts.
struct Reader {
  std::string good;
  std::function<bool(std::string_view)> takes;
};

std::vector<Reader> readers() {
  return {
      {spec_to_json(full_spec()), [](auto text) { return spec_from_json(text).ok(); }},
      {job_to_json(full_job()), [](auto text) { return job_from_json(text).ok(); }},
      {jobs_to_json({full_job()}), [](auto text) { return jobs_from_json(text).ok(); }},
      {project_to_json(full_project()), [](auto text) { return project_from_json(text).ok(); }},
      {project_to_json(full_project()),
       [](auto text) { return read_project(text, {.name = "team-a"}).ok(); }},
      {node_to_json(full_node()), [](auto text) { return node_from_json(text).ok(); }},
      {forecast_to_json(full_forecast()), [](auto text) { return forecast_from_json(text).ok(); }},
      {explanation_to_json(full_explanation()),
       [](auto text) { return explanation_from_json(text).ok(); }},
      {log_record_to_json(full_record()),
       [](auto text) { return log_record_from_json(text).ok(); }},
      {label_changes_to_json({{"a", "b"}, {"c", std::nullopt}}),
       [](auto text) { return label_changes_from_json(text).ok(); }},
      {machine_types_to_json(job::usual_machine_types()),
       [](auto text) { return machine_types_from_json(text).ok(); }},
      {info_to_json({.version = "1", .pid = 1}),
       [](auto text) { return info_from_json(text).ok(); }},
  };
}

TEST(Fuzz, RandomBytesAreNotADocument) {
  std::mt19937 random(1);
  const std::vector<Reader> all = readers();
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes(random() % 100, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    for (const Reader& reader : all) EXPECT_FALSE(reader.takes(bytes));
    problem_from_json(400, bytes);
  }
}

TEST(Fuzz, ATruncatedDocumentIsRefused) {
  for (const Reader& reader : readers()) {
    ASSERT_TRUE(reader.takes(reader.good));
    for (size_t cut = 0; cut < reader.good.size(); ++cut) {
      ASSERT_FALSE(reader.takes(std::string_view(reader.good).substr(0, cut))) << cut;
    }
  }
}

TEST(Fuzz, ADocumentWithChangedBytesIsReadOrRefused) {
  std::mt19937 random(1);
  for (const Reader& reader : readers()) {
    for (int round = 0; round < 1'000; ++round) {
      std::string text = reader.good;
      for (int change = 0; change < 3; ++change) {
        text[random() % text.size()] = kJsonAlphabet[random() % kJsonAlphabet.size()];
      }
      reader.takes(text);
    }
  }
}

TEST(Fuzz, AValueOfAnyTypeInAnyPlaceIsReadOrRefused) {
  for (const Reader& reader : readers()) {
    for (size_t colon = reader.good.find(':'); colon != std::string::npos;
         colon = reader.good.find(':', colon + 1)) {
      const size_t end = reader.good.find_first_of(",}]", colon);
      for (const char* value : {"null", "true", "0", "-1", "1.5", "1e400", "18446744073709551615",
                                "\"\"", "[]", "{}", "[[[]]]", "{\"base64\":1}"}) {
        std::string text = reader.good;
        reader.takes(text.replace(colon + 1, end - colon - 1, value));
      }
    }
  }
}

}  // namespace
}  // namespace muster::api
