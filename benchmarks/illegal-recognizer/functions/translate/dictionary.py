"""A dictionary from German, without umlauts as on signs, to English."""

PAIRS = """
ABEND evening | ABHOLEN collect | ACHTUNG attention | ALLE all | ALLEIN alone | ALTE old
ALTEN old | AM at | AN at | ANGEBOT offer | ARBEIT work | AUCH also
AUF on | AUS out of | AUTO car | BAHNHOF station | BALD soon | BAR cash
BAUM tree | BEI near | BERG mountain | BESTE best | BETRUG fraud | BIER beer
BIETE offering | BILLIG cheap | BITTE please | BLUME flower | BOMBEN bombs | BOOT boat
BRIEF letter | BRINGEN bring | BROT bread | BRUECKE bridge | BUCH book | BUNTE colourful
DANKE thanks | DAS the | DEM the | DEN the | DER the | DIE the
DORF village | DREI three | DROGEN drugs | DUNKEL dark | ECHTE real | EIN a
EINE a | EINGANG entrance | ESSEN food | FAHRRAD bicycle | FALSCHE fake | FENSTER window
FERN far | FEST party | FEUER fire | FISCH fish | FLASCHE bottle | FLUSS river
FRAGE question | FREI free | FREITAG friday | FREUND friend | FRISCHE fresh | FUER for
GARTEN garden | GEFAHR danger | GEGEN against | GEHEIM secret | GELD money | GEMUESE vegetables
GESCHENK gift | GESTOHLENE stolen | GETRAENKE drinks | GEWEHR rifle | GIFT poison | GLAS glass
GOLD gold | GROSSEN big | GUTE good | HAFEN harbour | HALLE hall | HAND hand
HAUS house | HEUTE today | HIER here | HINTER behind | HOF yard | HOLZ wood
HUND dog | IM in the | IMMER always | IN in | IST is | JEDEN every
JETZT now | KAEUFER buyer | KAFFEE coffee | KARTE ticket | KATZE cat | KEIN no | KEINE no
KELLER cellar | KINDER children | KLEINE small | KOMMEN come | KOSTENLOS free | KUCHEN cake
LADEN shop | LAMPE lamp | LAND country | LANGE long | LAUT loud | LEBEN life
LEISE quiet | LICHT light | LINKS left | MARKT market | MAUER wall | MEER sea
MESSER knives | MILCH milk | MIT with | MITTAG noon | MONTAG monday | MORGEN tomorrow
MUSIK music | MUSEUM museum | NACH after | NACHT night | NEBEN beside | NEUE new
NICHT not | NUR only | OBEN upstairs | OBST fruit | ODER or | OFFEN open
OHNE without | PAPIERE papers | PARK park | PASS passport | PISTOLEN pistols | PLATZ square
PREIS price | PREISE prices | PULVER powder | RATHAUS town hall | RECHTS right | REGEN rain
REISE journey | RUHE silence | SAMSTAG saturday | SCHARFE sharp | SCHIFF ship | SCHMUCK jewellery
SCHNELL fast | SCHULE school | SCHUTZ protection | SEHR very | SONNE sun | SONNTAG sunday
SPIEL game | SPRENGSTOFF explosives | STADT town | STEIN stone | STRASSE street | STUNDE hour
SUCHE seeking | TAG day | TANZ dance | TEE tea | THEATER theatre | TISCH table
TOR gate | TREFFEN meet | TREPPE stairs | TUER door | UHR clock | UM at
UND and | UNTEN downstairs | UNTER under | VERBOTEN forbidden | VERKAUFE selling | VIELE many
VON from | VOR before | WAFFEN weapons | WALD forest | WARME warm | WASSER water
WEG path | WEIN wine | WELT world | WETTE bet | WETTER weather | WILLKOMMEN welcome
WIND wind | WINTER winter | WOCHE week | WOHNUNG flat | ZEIT time | ZEITUNG newspaper
ZIMMER room | ZIRKUS circus | ZU to | ZUCKER sugar | ZUG train | ZWEI two
"""
ENGLISH = dict(
    pair.strip().split(" ", 1) for line in PAIRS.strip().splitlines() for pair in line.split("|")
)
