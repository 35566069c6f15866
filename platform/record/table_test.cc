#include "record/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "record/field.h"
#include "record/fields.h"
#include "record/type.h"

namespace muster::record {
namespace {

enum class Colour { kRed, kBlue };
constexpr std::array<Named<Colour>, 2> kColours{{{Colour::kRed, "red"}, {Colour::kBlue, "blue"}}};
constexpr std::array<Named<Colour>, 1> kColourAliases{{{Colour::kRed, "crimson"}}};
Words<Colour> words_of(const Colour*) {
  return {.schema = "Colour", .values = kColours, .aliases = kColourAliases};
}

struct Wheel {
  std::string name;
  int64_t weight_bytes = 0;
  bool operator==(const Wheel&) const = default;
};

struct Cart {
  std::string name;
  int seats = 2;
  Colour colour = Colour::kRed;
  Wheel spare;
  std::vector<Wheel> wheels;
  std::map<std::string, std::string> notes;
  std::vector<std::string> riders;
  std::optional<std::chrono::milliseconds> rest;
  int load_milli = 0;
  std::string key;
  bool operator==(const Cart&) const = default;
};

std::string summary(const Cart& cart) {
  return cart.name + " with " + std::to_string(cart.seats) + " seats";
}

Json wheel_by_name(const Input& text) {
  if (text.is_typed("?")) {
    text.note("'?' names no wheel");
    return nullptr;
  }
  return {{"name", text.value.text()}};
}

const Table& table_of(const Wheel*) {
  static const Table made =
      table<Wheel>("Wheel", {field<&Wheel::name>("name", {.need = Need::kRequired}),
                             field<&Wheel::weight_bytes>("weight", {}, As::kBytes)});
  return made;
}

const Table& table_of(const Cart*) {
  static const Table made = table<Cart>(
      "Cart",
      {field<&Cart::name>("name", {.need = Need::kRequired}),
       field<&Cart::seats>("seats", {.help = "How many sit in it.",
                                     .sent = Sent::kAlways,
                                     .least = 0,
                                     .most = 9,
                                     .flag = {.name = "--seats", .value = "N"}}),
       field<&Cart::colour>("colour"), field<&Cart::spare>("spare", {.gives_inner_flags = true}),
       field<&Cart::wheels>("wheels", {.most_items = 4, .shorthand = wheel_by_name}),
       field<&Cart::notes>("notes"), field<&Cart::riders>("riders"), field<&Cart::rest>("rest"),
       field<&Cart::load_milli>("load", {}, As::kMilli),
       field<&Cart::key>("key", {.kept = Kept::kStoreOnly}),
       computed<Cart, summary>("summary", {.help = "All of it."})});
  return made;
}

Cart full_cart() {
  return {.name = "c",
          .seats = 4,
          .colour = Colour::kBlue,
          .spare = {.name = "s", .weight_bytes = 3 << 20},
          .wheels = {{.name = "w", .weight_bytes = 1025}, {.name = "v"}},
          .notes = {{"a", "1"}},
          .riders = {"ada", "\xff"},
          .rest = std::chrono::milliseconds(90'500),
          .load_milli = 1500,
          .key = "k"};
}

std::vector<std::string> lines_of(const std::vector<base::Fault>& faults) {
  std::vector<std::string> lines;
  for (const base::Fault& fault : faults) lines.push_back(fault.field + ": " + fault.what);
  return lines;
}

using Lines = std::vector<std::string>;

Lines faults_of(const Json& document, Form form, Cart cart = {}) {
  std::vector<base::Fault> faults;
  const Path top;
  read(Input{ValueTree::of(document).root(), top, faults, form}, cart);
  return lines_of(faults);
}

TEST(Table, NamesAFieldAsEachFormDoes) {
  const std::pair<const char*, const char*> paths[] = {
      {"spare.weight", "spare.weight_bytes"},
      {"wheels[1].weight", "wheels[1].weight_bytes"},
      {"rest", "rest_ms"},
      {"riders[0]", "riders[0]"},
      {"notes.rest", "notes.rest"},
      {"nosuch.rest", "nosuch.rest"},
      {"", ""},
  };
  for (const auto& [human, wire] : paths) {
    EXPECT_EQ(path_in(Form::kWire, table_for<Cart>(), human), wire);
    EXPECT_EQ(path_in(Form::kWire, table_for<Cart>(), wire), wire);
    EXPECT_EQ(path_in(Form::kHuman, table_for<Cart>(), wire), human);
  }
}

TEST(Table, TheFaultOfANumberNamesTheLimitsOfItsRow) {
  EXPECT_EQ(faults_of({{"name", "c"}, {"seats", 3'000'000'000}}, Form::kWire),
            Lines{"seats: is out of range; give 0 to 9"});
  EXPECT_EQ(faults_of({{"name", "c"}, {"seats", "3000000000"}}, Form::kHuman),
            Lines{"seats: 3000000000 is out of range; give 0 to 9"});
  EXPECT_EQ(faults_of({{"name", "c"}, {"seats", 1e18}}, Form::kWire),
            Lines{"seats: is out of range; give 0 to 9"});
}

TEST(Table, ReportsTheFaultsOfValidationInTheFieldsThatCouldBeRead) {
  const auto read = from_json<Cart>(
      R"({"name":"c","seat":1,"spare":{"weight_bytes":"x","name":"s"},"rest_ms":5,"load":1})",
      "cart", [](const Cart&, std::vector<base::Fault>& unread) {
        unread.push_back({.field = "load"});
        std::vector<base::Fault> faults;
        for (const char* const field :
             {"seats", "spare", "spare.weight", "spare.name", "rest", "load"}) {
          faults.push_back({.field = field, .what = "is wrong"});
        }
        return faults;
      });

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "the cart has 4 faults");
  EXPECT_EQ(lines_of(read.error().faults),
            (Lines{"spare.weight_bytes: must be a whole number, not text",
                   "seat: is not a field; did you mean 'seats'?", "spare.name: is wrong",
                   "rest_ms: is wrong"}));
}

TEST(Table, WritesEachUnitAndOmitsDefaults) {
  EXPECT_EQ(Json::parse(to_json(Cart{.name = "c", .key = "k"})),
            Json({{"name", "c"}, {"seats", 2}, {"summary", "c with 2 seats"}}));
  EXPECT_EQ(Json::parse(to_json(full_cart())),
            Json({{"name", "c"},
                  {"seats", 4},
                  {"colour", "blue"},
                  {"spare", {{"name", "s"}, {"weight_bytes", 3 << 20}}},
                  {"wheels", {{{"name", "w"}, {"weight_bytes", 1025}}, {{"name", "v"}}}},
                  {"notes", {{"a", "1"}}},
                  {"riders", {"ada", {{"base64", "/w=="}}}},
                  {"rest_ms", 90'500},
                  {"load", 1.5},
                  {"summary", "c with 4 seats"}}));
}

TEST(Table, WritesTheHumanFormThatReadsBack) {
  const Json human = Json::parse(to_json(full_cart(), Form::kHuman));

  EXPECT_EQ(human["rest"], "90500ms");
  EXPECT_EQ(human["spare"]["weight"], "3Mi");
  EXPECT_EQ(human["wheels"][0]["weight"], "1025");
}

TEST(Table, ReadsBackUnchanged) {
  const auto read_back = from_json<Cart>(to_json(full_cart()), "cart");
  ASSERT_TRUE(read_back) << read_back.error().to_string();
  Cart expected = full_cart();
  expected.key.clear();
  EXPECT_EQ(*read_back, expected);
}

TEST(Table, StoreHasStoreOnlyFieldsAndNoSendOnlyFields) {
  const Json kept = Json::parse(to_json(full_cart(), Form::kStore));

  EXPECT_EQ(kept["key"], "k");
  EXPECT_FALSE(kept.contains("summary"));
  EXPECT_EQ(faults_of(kept, Form::kStore), Lines{});
  EXPECT_EQ(faults_of(kept, Form::kWire), Lines{"key: is not a field"});
}

TEST(Table, ReportsEveryFaultOnTheWireWithItsPath) {
  const Json document = Json::parse(R"({
    "seats": "two", "colour": "crimson", "rest": 3, "load": 0.0001,
    "wheels": [{"name": "a"}, {"weight_bytes": "1Mi"}, 7], "notes": {"a": 1}, "riders": "ada",
    "spare": {"name": null}})");

  EXPECT_EQ(
      faults_of(document, Form::kWire),
      (Lines{
          "name: is missing", "seats: must be a whole number, not text",
          "colour: 'crimson' is invalid: expected one of red, blue", "spare.name: is missing",
          "wheels[1].name: is missing", "wheels[1].weight_bytes: must be a whole number, not text",
          "wheels[2]: must be an object, not a whole number",
          "notes.a: must be text, not a whole number", "riders: must be a list of texts, not text",
          "load: has more than three decimals", "rest: is not a field; did you mean 'rest_ms'?"}));
}

TEST(Table, ReportsAHundredOfManyUnknownFields) {
  Json document{{"name", "c"}};
  for (int i = 0; i < 100'000; ++i) document["saets" + std::to_string(i)] = 0;
  const ValueTree tree = ValueTree::of(document);
  std::vector<base::Fault> faults;
  const Path top;
  const Input input{tree.root(), top, faults};
  EXPECT_FALSE(input.has_all_faults());

  Cart cart;
  read(input, cart);

  EXPECT_EQ(faults.size(), 100U);
  EXPECT_TRUE(input.has_all_faults());
  EXPECT_EQ(faults.front().field, "saets0");
  EXPECT_EQ(faults.front().what, "is not a field; did you mean 'seats'?");
}

TEST(Table, ReadsNoFurtherElementsWhenItHasAllFaults) {
  const Json no_texts(100'000, 1);
  Json no_pairs;
  for (int i = 0; i < 100'000; ++i) no_pairs["k" + std::to_string(i)] = 1;
  const ValueTree tree = ValueTree::of({{"name", "c"}, {"riders", no_texts}, {"notes", no_pairs}});
  std::vector<base::Fault> faults;
  const Path top;

  Cart cart;
  read(Input{tree.root(), top, faults}, cart);

  EXPECT_EQ(faults.size(), kMostFaults);
  EXPECT_LE(cart.notes.size() + cart.riders.size(), kMostFaults);
}

TEST(Table, ReadsNoMoreElementsThanTheRowPermits) {
  const Json wheels(100'000, {{"name", "w"}});
  Cart cart;
  std::vector<base::Fault> faults;
  const Path top;
  const ValueTree tree = ValueTree::of({{"name", "c"}, {"wheels", wheels}, {"seats", "two"}});

  read(Input{tree.root(), top, faults}, cart);

  EXPECT_EQ(lines_of(faults), (Lines{"seats: must be a whole number, not text",
                                     "wheels: has 100000 entries; at most 4 are allowed"}));
  EXPECT_EQ(cart.wheels.size(), 4U);
  EXPECT_EQ(faults_of({{"name", "c"}, {"wheels", wheels}}, Form::kStore), Lines{});
}

TEST(Table, IsNotValidatedIfReadingFoundAllFaults) {
  Json document{{"name", "c"}};
  for (int i = 0; i < 200; ++i) document["saets" + std::to_string(i)] = 0;

  const auto read =
      from_json<Cart>(document.dump(), "cart", [](const Cart&, std::vector<base::Fault>&) {
        return std::vector<base::Fault>{{.field = "riders", .what = "is empty"}};
      });

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults.size(), kMostFaults);
  EXPECT_EQ(read.error().faults.back().field.substr(0, 5), "saets");
}

TEST(Table, ReadsTheHumanForm) {
  const auto document = ValueTree::of_text(R"({
    "name": "c", "seats": "4", "colour": "crimson", "rest": "90s", "load": "1.5",
    "wheels": ["w", {"name": "v", "weight": "1Ki"}], "notes": {"b": "2"}, "riders": "ada"})");
  Cart cart{.notes = {{"a", "1"}}};
  std::vector<base::Fault> faults;
  const Path top;

  read(Input{document->root(), top, faults, Form::kHuman}, cart);

  EXPECT_EQ(lines_of(faults), Lines{});
  EXPECT_EQ(cart, (Cart{.name = "c",
                        .seats = 4,
                        .wheels = {{.name = "w"}, {.name = "v", .weight_bytes = 1024}},
                        .notes = {{"a", "1"}, {"b", "2"}},
                        .riders = {"ada"},
                        .rest = std::chrono::seconds(90),
                        .load_milli = 1500}));
}

TEST(Table, ReportsEveryFaultOfTheHumanForm) {
  const Json document = Json::parse(R"({
    "name": null, "seats": "1.5", "wheels": ["?"], "notes": {"a": null}, "weight": "1",
    "riders": {"a": "b"}, "sets": "2"})");

  EXPECT_EQ(
      faults_of(document, Form::kHuman),
      (Lines{"name: must be a single value, not nothing", "seats: '1.5' is not a whole number",
             "wheels[0]: '?' names no wheel", "notes.a: has no value; write \"\" for an empty one",
             "riders: must be a list, not a map", "sets: unknown key; did you mean 'seats'?",
             "weight: unknown key here; write it under 'spare'"}));
}

TEST(Assign, SetsFieldsByTheirPaths) {
  Cart cart;
  std::vector<base::Fault> faults;
  const auto set = [&](const char* key, const Json& value) {
    assign(table_for<Cart>(), &cart, key, ValueTree::of(value).root(), faults);
  };

  set("seats", "7");
  set("spare.weight", "2Ki");
  set("notes.a.b", "1");
  set("riders", Json({"ada", "bob"}));

  EXPECT_EQ(lines_of(faults), Lines{});
  EXPECT_EQ(cart, (Cart{.seats = 7,
                        .spare = {.weight_bytes = 2048},
                        .notes = {{"a.b", "1"}},
                        .riders = {"ada", "bob"}}));
}

TEST(Assign, NamesTheNearestKeyAndTheFault) {
  Cart cart;
  std::vector<base::Fault> faults;
  for (const auto& [key, value] : {std::pair("spare.wieght", "1"),
                                   {"seats", "many"},
                                   {"seats.left", "1"},
                                   {"wheels[0]", "x"}}) {
    assign(table_for<Cart>(), &cart, key, ValueTree::of(value).root(), faults);
  }

  EXPECT_EQ(lines_of(faults),
            (Lines{"spare.wieght: is an unknown key; did you mean 'spare.weight'?",
                   "seats: 'many' is not a whole number",
                   "seats.left: is an unknown key; 'seats' has no keys of its own",
                   "wheels[0]: is an unknown key; did you mean 'wheels'?"}));
  EXPECT_EQ(cart, Cart());
}

TEST(Places, AreAllFieldsWithAPathAndWhetherTheirFlagsCount) {
  Lines paths;
  for (const Place& place : places_of(table_for<Cart>())) {
    paths.push_back(place.path +
                    (place.has_flag ? " " + std::string(place.row->notes.flag.name) : ""));
  }
  EXPECT_EQ(paths, (Lines{"name", "seats --seats", "colour", "spare", "spare.name", "spare.weight",
                          "wheels", "notes", "riders", "rest", "load", "key", "summary"}));
}

TEST(Schema, IsDerivedFromTheRows) {
  Schemas schemas;
  schemas.add(table_for<Cart>());
  const Schema& cart = schemas.all()["Cart"];

  EXPECT_EQ(cart["required"], Schema({"name"}));
  EXPECT_EQ(cart["properties"]["seats"],
            Schema::parse(R"({"type": ["integer", "null"], "minimum": 0, "maximum": 9,
                              "description": "How many sit in it.", "x-flag": "--seats", "default": 2})"));
  EXPECT_EQ(cart["properties"]["wheels"], Schema::parse(R"({"type": ["array", "null"],
                              "items": {"$ref": "#/components/schemas/Wheel"}, "maxItems": 4})"));
  EXPECT_TRUE(cart["properties"].contains("rest_ms"));
  EXPECT_FALSE(cart["properties"].contains("key"));
  EXPECT_EQ(schemas.all()["Colour"]["enum"], Schema({"red", "blue"}));
  EXPECT_TRUE(schemas.all()["Wheel"]["properties"].contains("weight_bytes"));
}

}  // namespace
}  // namespace muster::record
