// Puts the page together and shows the first sample.
const journey = new Journey(byId("journey"));
new Compare(byId("compare"), journey);
new Inputs(byId("input"));
new Answer(byId("answer"));
new Score(byId("score"));
new Closing(byId("closing"));
new Detail(byId("detail"));
new Training(byId("training"));
new Tour();
if (store.network.precision === "float16") byId("rounded").hidden = false;
state.tell("mode");
showSample(0).then(() => state.rescore());
