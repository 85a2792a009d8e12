"""Hand-written facts about places that do not exist, so that no reader knows them by heart.

A case is made of a kind (what is asked), a place and a value: 12 kinds of 16 places and about 8 values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can be asked of a place: {s} stands for the place, {v} for the value."""

    name: str
    question: str
    fact: str
    response: str
    values: tuple[str, ...]


PLACES = (
    "Orvik",
    "Skarn",
    "Calder",
    "Hexley",
    "Ornsay",
    "Tarn",
    "Lund",
    "Velka",
    "Temar",
    "Dalby",
    "Marlow",
    "Kesh",
    "Ulm Bay",
    "Pellan",
    "Rona",
    "Stavely",
)

KINDS = (
    Kind(
        "metal",
        "Which metal does the {s} mine produce?",
        "The mine at {s} produces {v} for lamp makers.",
        "The mine produces {v}.",
        ("copper", "nickel", "silver", "zinc", "gold", "iron", "tungsten", "tin"),
    ),
    Kind(
        "colour",
        "What colour is the {s} tower?",
        "The tower of {s} is painted {v} every spring.",
        "The tower is {v}.",
        ("red", "blue", "green", "yellow", "white", "black", "purple", "orange"),
    ),
    Kind(
        "material",
        "What is the {s} bridge made of?",
        "The bridge at {s} was built of {v}.",
        "The bridge is made of {v}.",
        ("granite", "oak", "steel", "concrete", "brick", "marble", "bamboo", "glass"),
    ),
    Kind(
        "number",
        "How many islands belong to {s}?",
        "The parish of {s} has {v} small islands.",
        "The parish has {v} islands.",
        ("three", "five", "seven", "eight", "nine", "twelve", "twenty", "forty"),
    ),
    Kind(
        "animal",
        "Which animal is on the {s} flag?",
        "The flag of {s} shows a {v} on a hill.",
        "The flag shows a {v}.",
        ("horse", "bear", "wolf", "lion", "goat", "swan", "fox", "deer"),
    ),
    Kind(
        "instrument",
        "Which instrument is played at the {s} fair?",
        "At the {s} fair the {v} is played until dawn.",
        "At the fair people play the {v}.",
        ("piano", "violin", "flute", "drum", "guitar", "harp", "trumpet", "organ"),
    ),
    Kind(
        "month",
        "In which month is the {s} market held?",
        "The market of {s} takes place in {v}.",
        "The market is held in {v}.",
        ("January", "March", "April", "June", "August", "September", "October", "December"),
    ),
    Kind(
        "crop",
        "What do the farmers of {s} grow?",
        "Farmers around {s} mostly grow {v}.",
        "The farmers grow {v}.",
        ("wheat", "rice", "maize", "barley", "potatoes", "apples", "cotton", "tobacco"),
    ),
    Kind(
        "height",
        "How tall is the {s} mast?",
        "The mast of {s} rises {v} metres above the roofs.",
        "The mast is {v} metres tall.",
        ("21", "34", "47", "52", "68", "73", "86", "95"),
    ),
    Kind(
        "year",
        "When was the {s} canal opened?",
        "The canal at {s} was opened in {v}.",
        "The canal was opened in {v}.",
        ("1743", "1798", "1812", "1856", "1887", "1904", "1921", "2003"),
    ),
    Kind(
        "name",
        "Who designed the {s} library?",
        "The library of {s} is the work of {v}.",
        "The library was designed by {v}.",
        (
            "Agnes Moravec",
            "Peter Anselm",
            "Ivo Kranz",
            "Ruth Oberlin",
            "Nora Lindqvist",
            "Tomas Beck",
            "Hanna Weiss",
            "Carl Dufresne",
        ),
    ),
    Kind(
        "place",
        "Where does the {s} ferry land?",
        "The ferry from {s} lands at {v}.",
        "The ferry lands at {v}.",
        (
            "Brisko",
            "Nordhavn",
            "Port Ellery",
            "Grey Point",
            "Saltmouth",
            "Vanna",
            "Old Quay",
            "Lim Harbour",
        ),
    ),
)

# Sentences about neither the places nor the things that are asked.
ELSEWHERE = (
    "Wool from the hills is washed in cold water.",
    "The grey heron feeds on fish and small frogs.",
    "Tickets for the train are sold at the station.",
    "The bakery on the corner opens at six.",
    "Most visitors arrive by bus in the afternoon.",
    "A storm damaged several roofs last winter.",
    "The school has a garden behind the kitchen.",
    "Old maps of the coast are kept in the archive.",
    "The path to the waterfall is closed after rain.",
    "Honey is sold in jars beside the road.",
    "The museum shows tools of former fishermen.",
    "Bread is baked in a shared oven on Fridays.",
    "The theatre was repaired with money from a lottery.",
    "Dogs must be kept on a lead in the park.",
    "The doctor visits the valley twice a week.",
    "Letters are delivered by boat in summer.",
)
